package finding

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// pages hold one page for each hundred codes: tg1xx.md, tg2xx.md and so on.
//
//go:embed catalogue/*.md
var pages embed.FS

// Explanation is the section of a code in the catalogue.
type Explanation struct {
	Code     string
	Title    string // a noun in lower case
	Severity Severity
	Reason   string // the rule and why it exists, in sentences
	Wrong    string // an example that causes the finding
	Right    string // the corrected example
}

// Explain returns the explanation of a code such as "TG204".
func Explain(code string) (Explanation, bool) {
	e, ok := catalogue()[code]
	return e, ok
}

// Codes returns every code, sorted.
func Codes() []string {
	return slices.Sorted(maps.Keys(catalogue()))
}

// String returns the explanation as `topogen explain` prints it.
func (e Explanation) String() string {
	var out strings.Builder
	out.WriteString(e.Code + " (" + string(e.Severity) + "): " + e.Title + "\n\n" + e.Reason + "\n")
	for _, example := range []struct{ title, text string }{{"Wrong", e.Wrong}, {"Right", e.Right}} {
		if example.text != "" {
			out.WriteString("\n" + example.title + ":\n\n    " + strings.ReplaceAll(strings.TrimRight(example.text, "\n"), "\n", "\n    ") + "\n")
		}
	}
	return out.String()
}

// catalogue holds the section of each code.
var catalogue = sync.OnceValue(func() map[string]Explanation {
	names, err := fs.Glob(pages, "catalogue/*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := pages.ReadFile(name)
		if err != nil {
			panic(err) // the page is embedded
		}
		texts[i] = string(text)
	}
	return sections(texts...)
})

// sections reads the sections of the pages. It panics if a section has no title or a code has
// two sections, because a test writes the pages again from the result and would lose one.
func sections(pages ...string) map[string]Explanation {
	all := map[string]Explanation{}
	for _, page := range pages {
		page = strings.ReplaceAll(page, "\r\n", "\n") // git checks out with \r\n on Windows
		for _, section := range strings.Split(page, "\n## ")[1:] {
			section, _, _ = strings.Cut(section, "\n<a id=") // the anchor of the next section
			heading, text, _ := strings.Cut(section, "\n")
			code, title, _ := strings.Cut(heading, ": ")
			if _, twice := all[code]; twice || title == "" {
				panic("finding: " + code + " must have one section with a title")
			}
			all[code] = explanation(code, title, text)
		}
	}
	return all
}

func explanation(code, title, text string) Explanation {
	severity := Error
	if strings.HasPrefix(code, "TG4") {
		severity = Warning
	}
	reason, _, _ := strings.Cut(text, "\nWrong:\n")
	return Explanation{
		Code: code, Title: title, Severity: severity, Reason: strings.TrimSpace(reason),
		Wrong: example(text, "Wrong"), Right: example(text, "Right"),
	}
}

// example returns the code block under a title, or "" if there is none.
func example(text, title string) string {
	_, block, _ := strings.Cut(text, "\n"+title+":\n\n```")
	_, block, _ = strings.Cut(block, "\n") // skips the language
	block, _, _ = strings.Cut(block, "```")
	return block
}
