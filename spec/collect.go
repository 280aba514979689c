package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// NewFinding returns a finding with the severity that the catalogue gives its
// code. The message is one sentence without a period at its end; the suggestion
// is what to do instead ("did you mean \"pricing\"?") and may be empty. Control
// characters in both, which can only be a file's, are replaced.
// It panics on a code that the catalogue does not have.
func NewFinding(code, file string, at Range, pointer, message, suggestion string) Finding {
	e, ok := Explain(code)
	if !ok {
		panic("spec: no finding has the code " + code)
	}
	return Finding{
		Code: code, Severity: e.Severity, File: file, Range: at,
		Pointer: pointer, Message: harmless(message), Suggestion: harmless(suggestion),
	}
}

// Sort orders findings by file, position and code, and removes repeated ones.
func Sort(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Range.Line, b.Range.Line),
			cmp.Compare(a.Range.Column, b.Range.Column),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.Code == b.Code && a.File == b.File && a.Range == b.Range && a.Message == b.Message
	})
}

// HasErrors reports whether any of the findings is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}

// collector gathers the findings of one file and knows which parts of it are
// broken, so that a finding that only follows from another is not made.
type collector struct {
	file   string
	list   []Finding
	left   int             // findings beyond findingsMax
	broken map[string]bool // pointers with an error at or below them
	exact  map[string]bool // pointers of values that are wrong themselves
}

func newCollector(file string) *collector {
	return &collector{file: file, broken: map[string]bool{}, exact: map[string]bool{}}
}

func (c *collector) add(code string, at Range, pointer, message, suggestion string) {
	f := NewFinding(code, c.file, at, pointer, message, suggestion)
	if f.Severity == Error {
		if !aboutKeys[code] {
			c.exact[pointer] = true
		}
		for p := pointer; !c.broken[p]; p = p[:strings.LastIndexByte(p, '/')] {
			c.broken[p] = true
			if p == "" {
				break
			}
		}
	}
	if len(c.list) < findingsMax {
		c.list = append(c.list, f)
	} else {
		c.left++
	}
}

// aboutKeys are findings about a key within the value at their pointer, or about
// one more value there. They break the entry and not the value.
var aboutKeys = map[string]bool{codeDuplicateKey: true, codeKeyNotText: true, codeMissingKey: true, codeMerge: true}

func (c *collector) addText(code string, t Text, message, suggestion string) {
	c.add(code, t.At, t.Pointer, message, suggestion)
}

// all returns every finding, sorted.
func (c *collector) all() []Finding {
	findings := Sort(c.list)
	if c.left > 0 {
		findings = append(findings, NewFinding(codeLimit, c.file, Range{}, "",
			fmt.Sprintf("%d more findings are not shown", c.left), "repair these first"))
	}
	return findings
}
