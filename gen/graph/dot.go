package graph

import (
	"bytes"
	"fmt"
	"strings"
)

// DOT returns the graph in the language of Graphviz.
func DOT(g Graph) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "digraph %s {\n", dotText(g.Name))
	b.WriteString("  rankdir=LR\n")
	b.WriteString("  node [shape=box, style=rounded, fontname=\"Helvetica\", fontsize=12]\n")
	if g.Load != nil {
		fmt.Fprintf(&b, "  label=%s\n  fontname=\"Helvetica\"\n", dotText(g.Load.words()))
	}
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=10]\n")
	for i, n := range g.Nodes {
		label := dotText(append([]string{n.Name}, nodeLines(n)...)...)
		attr, styles := "", ""
		switch {
		case n.Timer:
			styles, attr = "rounded,dotted", ", fontsize=10, height=0.3"
		case n.External:
			styles = "rounded,dashed"
		case n.Blocking:
			attr = ", peripheries=2"
		case n.Machine != nil:
			styles, attr = "solid", ", shape=cylinder"
		}
		if n.Load != nil {
			styles = "rounded,filled"
			attr += fmt.Sprintf(", fillcolor=%q, fontcolor=%q", heatFills[n.Load.heat()], heatText)
		}
		if styles != "" {
			attr = fmt.Sprintf(", style=%q", styles) + attr
		}
		fmt.Fprintf(&b, "  n%d [label=%s%s]\n", i, label, attr)
	}
	for i, group := range g.Groups {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s\n    style=\"rounded,dashed\"\n    fontname=\"Helvetica\"\n    fontsize=10\n", i, dotText(group.title()))
		for _, n := range group.Nodes {
			fmt.Fprintf(&b, "    n%d\n", n)
		}
		b.WriteString("  }\n")
	}
	most := g.most()
	for _, e := range g.Edges {
		if !g.drawable(e) {
			continue
		}
		attr := ""
		if e.Load != nil {
			attr = ", penwidth=" + tenths(lineWidths[e.Load.traffic(most)])
		}
		if e.Reply != "" {
			attr += ", dir=both, arrowtail=empty"
		}
		if e.DeadLetter {
			attr += ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s%s]\n", e.From, e.To, dotText(edgeLines(e)...), attr)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// dotEscaper escapes the special characters of a quoted label: a backslash begins an escape
// (\N is the node's name), and & begins an HTML entity.
var dotEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;")

// dotText is a quoted DOT string of several lines.
func dotText(lines ...string) string {
	escaped := make([]string, len(lines))
	for i, line := range lines {
		escaped[i] = dotEscaper.Replace(oneLine(line))
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}
