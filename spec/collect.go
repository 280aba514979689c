package spec

import (
	"fmt"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// collector collects the findings of one file. It records which parts of the file are broken, so
// that a mistake which only follows from another one is not reported.
type collector struct {
	file    string
	list    []finding.Finding
	omitted int             // findings beyond findingsMax
	broken  map[string]bool // pointers with an error at or below them
	exact   map[string]bool // pointers of values that have an error themselves

	misspelled map[string]bool // pointers of mappings with a misspelled key
}

func newCollector(file string) *collector {
	return &collector{file: file, broken: map[string]bool{}, exact: map[string]bool{}}
}

func (c *collector) add(code string, at finding.Range, pointer, message, suggestion string) {
	f := finding.New(code, c.file, at, pointer, message, suggestion)
	if f.Severity == finding.Error {
		if !entryCodes[code] {
			c.exact[pointer] = true
		}
		c.follow(pointer)
	}
	if c.follows(code, pointer) {
		return
	}
	if len(c.list) < findingsMax {
		c.list = append(c.list, f)
	} else {
		c.omitted++
	}
}

// follow marks a value and everything that contains it as broken, without a finding.
func (c *collector) follow(pointer string) {
	for p := pointer; !c.broken[p]; p = p[:strings.LastIndexByte(p, '/')] {
		c.broken[p] = true
		if p == "" {
			break
		}
	}
}

// entryCodes are the codes of findings about a missing or additional key in the value at their
// pointer. They break the entry, but the value itself can still be checked.
var entryCodes = map[string]bool{finding.DuplicateKey: true, finding.KeyNotText: true, finding.MissingKey: true, finding.Merge: true}

// follows reports whether a finding may only follow from a misspelled key: it says that a part of
// the file is missing, and that part may have the misspelled key. Its repair would remove correct
// settings. So the finding is not reported until the key is corrected.
func (c *collector) follows(code, pointer string) bool {
	return len(c.misspelled) > 0 && absenceCodes[code] || code == finding.MissingKey && c.misspelled[pointer]
}

// absenceCodes are the codes of findings that may say that another part of the file is missing.
var absenceCodes = map[string]bool{
	finding.NoEffect: true, finding.KindHas: true, finding.Controller: true, finding.MachineEdge: true,
	finding.NoCluster: true, finding.TieBreaker: true, finding.NoStore: true,
}

func (c *collector) addText(code string, t Text, message, suggestion string) {
	c.add(code, t.At, t.Pointer, message, suggestion)
}

// all returns every finding, sorted.
func (c *collector) all() []finding.Finding {
	findings := finding.Sort(c.list)
	if c.omitted > 0 {
		findings = append(findings, finding.New(finding.Limit, c.file, finding.Range{}, "",
			fmt.Sprintf("%d more findings are not shown", c.omitted), "fix these first"))
	}
	return findings
}
