package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
	"github.com/topogen/topogen/spec/finding"
)

// TestExamplesOfTheCatalogue parses each example. The wrong example must have its finding, and
// the right example must have no findings.
func TestExamplesOfTheCatalogue(t *testing.T) {
	for _, e := range ownEntries() {
		code := e.Code
		if e.Wrong == "" {
			if code != finding.Limit {
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
			return slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == code })
		}
		if !has(e.Wrong) {
			t.Errorf("%s: the wrong example does not have the finding", code)
		}
		if _, findings := Parse("topology.yml", []byte(e.Right)); len(findings) > 0 || has(e.Right) {
			t.Errorf("%s: the right example has findings: %v", code, findings)
		}
	}
}

// ownEntries returns the sections of the findings of this package.
func ownEntries() (own []finding.Explanation) {
	for _, code := range finding.Codes() {
		if e, _ := finding.Explain(code); code < finding.ProcessorType && code != finding.Generated || strings.HasPrefix(code, "TG40") || code == finding.Exposed || code == finding.UnusedStore {
			own = append(own, e)
		}
	}
	return own
}

// TestIndexOfCases compares the cases with their index, which lists the codes of each case.
func TestIndexOfCases(t *testing.T) {
	var index strings.Builder
	index.WriteString(`# Cases of the parser

Each folder has a topology file, input.yml, and the findings that Parse must report, findings.txt. A case whose name begins with clean- has no
findings. ` + "`go test ./spec -run 'TestParse$|TestIndexOfCases' -update`" + ` writes the findings and this index.

| case | findings |
|---|---|
`)
	codeForm := regexp.MustCompile(`(?m) (TG[0-9]{3}): `)
	cases, _ := filepath.Glob("testdata/parse/*/findings.txt")
	for _, name := range cases {
		var codes []string
		for _, m := range codeForm.FindAllSubmatch(read(t, name), -1) {
			codes = append(codes, string(m[1]))
		}
		slices.Sort(codes)
		folder := filepath.Base(filepath.Dir(name))
		fmt.Fprintf(&index, "| [%s](%s/input.yml) | %s |\n", folder, folder, strings.Join(slices.Compact(codes), ", "))
	}
	golden.Compare(t, "testdata/parse/README.md", []byte(index.String()))
}

// TestEachFindingHasACase checks that testdata has a case for each finding of this package.
func TestEachFindingHasACase(t *testing.T) {
	var seen strings.Builder
	cases, _ := filepath.Glob("testdata/parse/*/findings.txt")
	for _, name := range cases {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(content)
	}
	for _, e := range ownEntries() {
		elsewhere := e.Code == finding.Unreachable || e.Code == finding.Limit // TestUnreachable, TestHostile
		if !elsewhere && !strings.Contains(seen.String(), " "+e.Code+":") {
			t.Errorf("no case has %s", e.Code)
		}
	}
}
