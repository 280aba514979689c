package main

import "regexp"

// A pattern is a form of sentence that most readers read twice.
type pattern struct {
	name    string
	words   []string       // a match has one of these words, in lower case
	form    *regexp.Regexp // matched against one sentence
	except  *regexp.Regexp // matches that are fine; nil: none
	instead string
}

// patterns are common in text that was translated word by word. CONTRIBUTING.md,
// section Plain English, has the rules behind them. Package regexp has no lookahead, so
// an exception is matched against the rest of the sentence, from the start of the
// match.
var patterns = []pattern{
	{"headless subject", []string{"what", "who"},
		regexp.MustCompile(`^(What|Who|Whoever|Whatever)\b.*`), regexp.MustCompile(`\?`),
		"name the subject: 'a client that ...', 'messages that ...'"},
	{"headless subject", []string{"who ", "what "},
		regexp.MustCompile(`(, |; |: |\b(and|but|of|for|to|by|from|with|than) )(who|what) (is|are|was|were|has|have|had|comes?|came|waits?|goes|does|did|can|cannot|may|wants?|asks?|sends?|speaks?|listens?|reads?|leads?|stands?|fails?|failed|forgets?)\b`), nil,
		"name the subject: 'a client that ...', 'messages that ...'"},
	{"nobody", []string{"body"},
		regexp.MustCompile(`(?i)\b(no|some|every|any)body\b`), nil,
		"name who it is: 'no caller', 'every node'"},
	{"one that", []string{"one ", "those ", "that that", "that wh", "that of"},
		regexp.MustCompile(`(?i)\b(one|those|that) (that|which|who|of which)\b`), nil,
		"repeat the noun"},
	{"is no", []string{" no "},
		regexp.MustCompile(`\b[A-Za-z]* ?\b(is|are|was|were) no ([a-z]+ )?[a-z]+\b`),
		regexp.MustCompile(`(?i)^(t?here (is|are|was|were)|[A-Za-z]* ?(is|are|was|were) no ([a-z]+ )?(longer|more|less|such|better|worse|different|need|way|reason|doubt|guarantee)\b)`),
		"'is not a', 'there is no'"},
	{"another than", []string{"other than"},
		regexp.MustCompile(`\b(an)?other than (these|those|the|that|before|this)\b`), nil,
		"'differs from', 'does not match'"},
	{"that there is", []string{"that there"},
		regexp.MustCompile(`\bthat there (is|are)\b`), nil,
		"say it directly"},
	{"old word", []string{"anew", "likewise", "thereby", "whereof", "hitherto", "thereof", "besides", "else's", "twain", "lest", "henceforth", "whither", "therein", "perchance"},
		regexp.MustCompile(`(?i)\b(anew|likewise|thereby|whereof|hitherto|thereof|besides|else's|twain|lest|henceforth|whither|therein|perchance)\b`), nil,
		"'again', 'the same', 'also'"},
	{"stands", []string{"stand", "stood"},
		regexp.MustCompile(`\b(stands?|stood) (in|at|there|beside|under|where|before|behind|as|to|by|on)\b`), nil,
		"'is', 'is set', 'remains'"},
	{"so is it", []string{"so "},
		regexp.MustCompile(`\bso (is|are|does|do|has|have|can) (it|they|who|what|those|the one)\b`), nil,
		"begin a new sentence"},
	{"by which not", []string{" which "},
		regexp.MustCompile(`\b(while|in|by|from|to) which (it|the|a|nothing|nobody)\b.*\bnot\b`), nil,
		"write two sentences"},
	{"elision", []string{", the", ", other", ", that", ", likewise", "; the", "; other", "; that", "; likewise"},
		regexp.MustCompile(`[,;] (the others?|others|those|that of|the rest|likewise) (not|do|does|did|are|is|have|has)\b`),
		regexp.MustCompile(`^[,;] (the others?|others|those|that of|the rest|likewise) (do|does|did|are|is|have|has) not\b`),
		"finish the sentence"},
	{"is to be", []string{" to be "},
		regexp.MustCompile(`\b(is|are) to be [a-z]+(ed|en|t)\b`), nil,
		"'must be', 'will be'"},
	{"meanwhile", []string{"meanwhile", "of its own accord", "by themselves", "for good", "once for all"},
		regexp.MustCompile(`(?i)\b(meanwhile|of its own accord|by themselves|for good|once for all)\b`), nil,
		"say when, say how"},
}
