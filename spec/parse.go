package spec

import (
	"fmt"

	"github.com/topogen/topogen/spec/finding"
	"gopkg.in/yaml.v3"
)

// Parse reads a topology file. file is its name in findings, and src is its text.
//
// The findings report all mistakes that the file alone shows, sorted by position. The topology
// is nil if the file is not valid YAML or not a mapping, has another version, or exceeds a
// limit. If there are other errors, the topology is partial: processors, edges and messages
// with an error are left out, so that later checks can continue with the rest, and indices
// differ from those of the corrected file. Without errors the topology is complete.
//
// Parse is a pure function. It is safe for any input and for concurrent use.
func Parse(file string, src []byte) (*Topology, []finding.Finding) {
	found := newCollector(file)
	if t := parse(file, src, found); t != nil {
		t.Partial = len(found.broken) > 0
		return t, found.all()
	}
	return nil, found.all()
}

func parse(file string, src []byte, found *collector) *Topology {
	if len(src) > bytesMax {
		found.add(finding.Limit, finding.Range{}, "", fmt.Sprintf("a topology file must have at most %d bytes, got %d", bytesMax, len(src)), "split the topology")
		return nil
	}
	s := newSource(src)
	root := document(s, found)
	if root == nil {
		return nil
	}
	w := &walker{source: s, found: found, open: map[*yaml.Node]bool{}}
	tree, _ := w.value(root, "", 0)
	if w.exhausted || tooMany(tree, found) || unsupportedVersion(tree, found) {
		return nil
	}
	b := newBuilder(found)
	forms := checkSchema(tree, found, b.similar)
	if tree.Kind != Map {
		return nil
	}
	b.build(tree)
	b.check()
	forms.report(found)
	t := b.withoutErrors()
	t.File, t.Source = file, src
	return t
}

// unsupportedVersion reports a version that this package does not read. Nothing else is
// checked then, because the format of such a file is unknown.
func unsupportedVersion(root *Value, found *collector) bool {
	f := root.field("version")
	if f == nil || f.Value.Kind != Int || f.Value.integer() == formatVersion {
		return false
	}
	found.add(finding.Version, f.Value.At, f.Value.Pointer, fmt.Sprintf("version must be %d, got %s", formatVersion, clip(f.Value.Text)), fmt.Sprintf("write %d, or use a topogen that reads this version", formatVersion))
	return true
}

// tooMany reports more processors or edges than a topology may have.
func tooMany(root *Value, found *collector) (more bool) {
	if f := root.field("processors"); f != nil && len(f.Value.Fields) > processorsMax {
		over := f.Value.Fields[processorsMax].Key
		found.addText(finding.Limit, over, fmt.Sprintf("a topology must have at most %d processors, got %d", processorsMax, len(f.Value.Fields)), "split the topology")
		more = true
	}
	if f := root.field("edges"); f != nil && len(f.Value.Items) > edgesMax {
		over := f.Value.Items[edgesMax]
		found.add(finding.Limit, over.At, over.Pointer, fmt.Sprintf("a topology must have at most %d edges, got %d", edgesMax, len(f.Value.Items)), "split the topology")
		more = true
	}
	return more
}
