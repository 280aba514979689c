package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// noTestYet marks a row of a table that has no test.
const noTestYet = "none yet"

// proofPages are the pages whose tables name tests in their last column.
var proofPages = []string{
	"docs/reference/promises.md", "docs/reference/promises-runtime.md", "docs/reference/rast.md",
	"docs/reference/chimaera.md", "docs/reference/recovery.md", "docs/reference/faults.md",
}

var proofPattern = regexp.MustCompile("`([^`]+)`")

// mutantPattern matches a deliberate bug that a page names: a folder, and its name in the list
// of the folder.
var mutantPattern = regexp.MustCompile("`(\\S+ mutant \\S+)`")

// proofs finds tests that a table of promises names and that do not exist, and deliberate bugs
// that a page names and that do not exist. A proof is a file or a folder, or a folder and the
// name of a test in it.
func proofs(r *repo) (found []finding, err error) {
	if found, err = unknownMutants(r); err != nil {
		return nil, err
	}
	for _, file := range proofPages {
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		rows, open := 0, 0
		for i, line := range strings.Split(text, "\n") {
			cells := strings.Split(line, " | ")
			if !strings.HasPrefix(line, "| ") || len(cells) < 2 || strings.HasSuffix(line, " | proved by |") {
				continue
			}
			rows++
			proved := strings.TrimSuffix(cells[len(cells)-1], " |")
			if proved == noTestYet {
				open++
				continue
			}
			for _, message := range r.wrongProofs(proved) {
				found = append(found, finding{file, i + 1, message})
			}
		}
		r.count(rows)
		r.note("%s: %d rows, %d have no test yet", file, rows, open)
		if rows == 0 {
			found = append(found, finding{file, 0, "the page has no table of promises: correct the list in internal/cmd/lint/proofs.go"})
		}
	}
	return found, nil
}

func unknownMutants(r *repo) (found []finding, err error) {
	list, err := r.pages()
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		for i, line := range p.lines {
			for _, m := range mutantPattern.FindAllStringSubmatch(line, -1) {
				if place, name, _ := strings.Cut(m[1], " "); !r.proves(place, name) {
					found = append(found, finding{p.file, i + 1, fmt.Sprintf("the %s does not exist: write a name from testdata/mutants.txt of the folder", m[1])})
				}
			}
		}
	}
	return found, nil
}

// wrongProofs returns what is wrong with the last cell of a row.
func (r *repo) wrongProofs(cell string) (wrong []string) {
	names := proofPattern.FindAllStringSubmatch(cell, -1)
	if len(names) == 0 {
		return []string{"name a test in the last cell, or write " + noTestYet}
	}
	for _, name := range names {
		if place, test, _ := strings.Cut(name[1], " "); !mutantPattern.MatchString(name[0]) && !r.proves(place, test) {
			wrong = append(wrong, fmt.Sprintf("the test %s does not exist: name the test that checks this promise", name[1]))
		}
	}
	return wrong
}

// proves reports whether a file or folder exists and, if test is not empty, whether the folder
// contains this test, or the list of the folder contains this mutant.
func (r *repo) proves(place, test string) bool {
	if mutant, ok := strings.CutPrefix(test, "mutant "); ok {
		text, err := r.read(path.Join(place, "testdata/mutants.txt"))
		return err == nil && strings.Contains(text, "\n== "+mutant+": ")
	}
	if test == "" {
		return r.exists(place)
	}
	files, err := r.glob(path.Join(place, "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		if text, err := r.read(file); err == nil && strings.Contains(text, "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
