package spec

import (
	"fmt"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// collector gathers the findings of one file and knows which parts of it are
// broken, so that a finding that only follows from another is not made.
type collector struct {
	file   string
	list   []finding.Finding
	left   int             // findings beyond findingsMax
	broken map[string]bool // pointers with an error at or below them
	exact  map[string]bool // pointers of values that are wrong themselves
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
	if len(c.list) < findingsMax {
		c.list = append(c.list, f)
	} else {
		c.left++
	}
}

// follow marks what is broken, and all that it is in, without a finding of its own.
func (c *collector) follow(pointer string) {
	for p := pointer; !c.broken[p]; p = p[:strings.LastIndexByte(p, '/')] {
		c.broken[p] = true
		if p == "" {
			break
		}
	}
}

// entryCodes are findings about a key within the value at their pointer, or about
// one more value there. They break the entry and not the value.
var entryCodes = map[string]bool{finding.DuplicateKey: true, finding.KeyNotText: true, finding.MissingKey: true, finding.Merge: true}

func (c *collector) addText(code string, t Text, message, suggestion string) {
	c.add(code, t.At, t.Pointer, message, suggestion)
}

// all returns every finding, sorted.
func (c *collector) all() []finding.Finding {
	findings := finding.Sort(c.list)
	if c.left > 0 {
		findings = append(findings, finding.New(finding.Limit, c.file, finding.Range{}, "",
			fmt.Sprintf("%d more findings are not shown", c.left), "fix these first"))
	}
	return findings
}
