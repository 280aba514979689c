package spec

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExamplesOfTheCatalogue parses each example: the wrong one has its finding,
// the right one none.
func TestExamplesOfTheCatalogue(t *testing.T) {
	for _, e := range ownEntries() {
		code := e.Code
		if e.Wrong == "" {
			if code != codeLimit {
				t.Errorf("%s has no example", code)
			}
			continue
		}
		has := func(src string) bool {
			topology, findings := Parse("topology.yml", []byte(src))
			if topology != nil && !topology.Partial {
				findings = append(findings, Unreachable(topology, func(p int) bool {
					return !slices.ContainsFunc(topology.Edges, func(e Edge) bool { return e.To == p })
				})...)
			}
			return slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == code })
		}
		if !has(e.Wrong) {
			t.Errorf("%s: the wrong example does not have it", code)
		}
		if _, findings := Parse("topology.yml", []byte(e.Right)); len(findings) > 0 || has(e.Right) {
			t.Errorf("%s: the right example has findings: %v", code, findings)
		}
	}
}

// ownEntries are the findings that this package makes.
func ownEntries() []Explanation {
	return slices.Concat(catalogueSyntax, catalogueMeaning, catalogueMachines, catalogueWarnings)
}

// TestCatalogueIsWhole checks that each code of this package has an entry, a case
// in testdata, and the severity of its group.
func TestCatalogueIsWhole(t *testing.T) {
	for _, m := range regexp.MustCompile(`code\w+ += "(TG\d{3})"`).FindAllStringSubmatch(string(read(t, "codes.go")), -1) {
		if _, ok := Explain(m[1]); !ok {
			t.Errorf("%s has no entry", m[1])
		}
	}
	var seen strings.Builder
	cases, _ := filepath.Glob("testdata/parse/*/findings.txt")
	for _, name := range cases {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(content)
	}
	for _, code := range Codes() {
		e, _ := Explain(code)
		if e.Code != code || e.Title == "" || e.Reason == "" || strings.HasSuffix(e.Title, ".") || !strings.ContainsAny(e.Reason[len(e.Reason)-1:], ".?") {
			t.Errorf("%s: the entry is not whole: %+v", code, e)
		}
		if warning := strings.HasPrefix(code, "TG4"); warning != (e.Severity == Warning) {
			t.Errorf("%s has the severity %s", code, e.Severity)
		}
	}
	for _, e := range ownEntries() {
		elsewhere := e.Code == codeUnreachable || e.Code == codeLimit // TestUnreachable, TestHostile
		if !elsewhere && !strings.Contains(seen.String(), " "+e.Code+":") {
			t.Errorf("no case has %s", e.Code)
		}
	}
}

func TestExplain(t *testing.T) {
	if _, ok := Explain("TG999"); ok {
		t.Error("TG999 is explained")
	}
	e, _ := Explain("TG204")
	golden(t, "testdata/explain.txt", []byte(e.String()))
}
