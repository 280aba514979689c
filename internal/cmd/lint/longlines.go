package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A longLine is a line of .ci/long that runs tests: the word tests, flags of go test, and
// packages.
type longLine struct {
	line    int
	folders []string // of the packages, relative to the root; "a/..." is a and all folders below it
	run     []alternative
	skip    []alternative
	race    bool
	tags    []string
	matched map[string]bool // the folders, and the texts of alternatives, that match a test
}

// An alternative is a part of a pattern of -run or -skip. Bars separate alternatives.
type alternative struct {
	text    string
	test    *regexp.Regexp
	partial bool // it selects subtests, so a part of the test
}

var (
	wordPattern   = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	quotes        = strings.NewReplacer("'", "", `"`, "")
	assignPattern = regexp.MustCompile(`^\w+=`)
)

// flagsOfLong are the flags that lines of .ci/long may have, and whether a value follows.
var flagsOfLong = map[string]bool{
	"-run": true, "-skip": true, "-tags": true, "-race": false, "-count": true, "-cpu": true, "-timeout": true, "-failfast": false,
}

// longLines returns the lines of .ci/long that run tests at the speed long, and findings about
// lines that cannot be read. Lines with variables of the shell, which run fuzzers, are left out.
func (r *repo) longLines() (lines []*longLine, found []finding, err error) {
	text, err := r.read(longFile)
	if err != nil {
		return nil, nil, err
	}
	folder, at := ".", 0
	all := strings.Split(text, "\n")
	for i := 0; i < len(all); i++ {
		command := all[i]
		for at = i + 1; strings.HasSuffix(command, `\`) && i+1 < len(all); {
			i++
			command = strings.TrimSuffix(command, `\`) + all[i]
		}
		words := wordPattern.FindAllString(command, -1)
		for len(words) > 0 && assignPattern.MatchString(words[0]) && !strings.HasPrefix(words[0], "TOPOGEN_SPEED=") {
			words = words[1:]
		}
		if len(words) == 2 && words[0] == "cd" && !strings.Contains(words[1], "$") {
			folder = path.Join(folder, quotes.Replace(words[1]))
		}
		if len(words) == 0 || words[0] != "tests" || strings.Contains(command, `"$`) {
			continue
		}
		l := &longLine{line: at, matched: make(map[string]bool)}
		if err := l.read(folder, words[1:]); err != nil {
			found = append(found, finding{longFile, at, err.Error()})
			continue
		}
		lines = append(lines, l)
	}
	return lines, found, nil
}

// read reads the words after tests.
func (l *longLine) read(folder string, words []string) (err error) {
	for ; len(words) > 0; words = words[1:] {
		word := quotes.Replace(words[0])
		if !strings.HasPrefix(word, "-") {
			l.folders = append(l.folders, path.Join(folder, word))
			continue
		}
		name, value, given := strings.Cut(word, "=")
		needed, ok := flagsOfLong[name]
		if !ok {
			return fmt.Errorf("the flag %s is unknown: add it to flagsOfLong in %s/longlines.go", name, ownPackage)
		}
		if needed && !given {
			if words = words[1:]; len(words) == 0 {
				return fmt.Errorf("the flag %s needs a value", name)
			}
			value = quotes.Replace(words[0])
		}
		switch name {
		case "-run":
			l.run, err = alternatives(value)
		case "-skip":
			l.skip, err = alternatives(value)
		case "-tags":
			l.tags = append(l.tags, strings.Split(value, ",")...)
		case "-race":
			l.race, l.tags = true, append(l.tags, "race")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alternatives reads a pattern as go test does.
func alternatives(pattern string) (list []alternative, err error) {
	for _, text := range split(pattern, '|') {
		levels := split(text, '/')
		a := alternative{text: text, partial: len(levels) > 1}
		if a.test, err = regexp.Compile(levels[0]); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

// split splits a pattern at a separator that is not in brackets, in parentheses, or after a
// backslash.
func split(pattern string, separator byte) (parts []string) {
	brackets, parentheses, start := 0, 0, 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[':
			brackets++
		case c == ']':
			brackets = max(0, brackets-1)
		case brackets > 0:
		case c == '(':
			parentheses++
		case c == ')':
			parentheses--
		case c == separator && parentheses == 0:
			parts = append(parts, pattern[start:i])
			start = i + 1
		}
	}
	return append(parts, pattern[start:])
}

// runs reports whether the line runs the whole test.
func (l *longLine) runs(t *test) bool {
	folder := slices.IndexFunc(l.folders, func(f string) bool { return isIn(t.folder, f) })
	if folder < 0 || !t.hasTags(l.tags) {
		return false
	}
	l.matched[l.folders[folder]] = true
	ran := len(l.run) == 0
	for _, a := range l.run {
		if a.test.MatchString(t.name) {
			l.matched[a.text] = true
			ran = ran || !a.partial
		}
	}
	for _, a := range l.skip {
		if a.test.MatchString(t.name) {
			l.matched[a.text] = true
			ran = false
		}
	}
	return ran && !(l.race && t.noRace)
}

// isIn reports whether go test finds a folder with the path of a package, which may end in /...
func isIn(folder, packages string) bool {
	prefix, isPrefix := strings.CutSuffix(packages, "...")
	return folder == packages || isPrefix && strings.HasPrefix(folder+"/", prefix)
}

// unmatched returns the folders and alternatives that match no test.
func (l *longLine) unmatched() (texts []string) {
	all := slices.Clone(l.folders)
	for _, a := range slices.Concat(l.run, l.skip) {
		all = append(all, a.text)
	}
	return slices.DeleteFunc(all, func(text string) bool { return l.matched[text] })
}
