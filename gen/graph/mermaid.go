package graph

import (
	"bytes"
	"fmt"
	"strings"
)

// Mermaid returns the graph as a Mermaid flowchart, for a fenced block of a README.
// External processors are slanted, blocking processors have double sides, state machines
// are cylinders, and timers are round. An edge with a reply has two arrowheads, and dead
// letters have a dotted line. Restart groups have a frame. A load colours the processors
// and makes lines with more traffic thicker; comments give its period.
func Mermaid(g Graph) []byte {
	var b bytes.Buffer
	b.WriteString("flowchart LR\n")
	if g.Load != nil {
		fmt.Fprintf(&b, "  %%%% %s\n", g.Load.words())
	}
	for i, n := range g.Nodes {
		left, right := "[", "]"
		switch {
		case n.Timer:
			left, right = "([", "])"
		case n.External:
			left, right = "[/", "/]"
		case n.Blocking:
			left, right = "[[", "]]"
		case n.Machine != nil:
			left, right = "[(", ")]"
		}
		label := mermaidText(n.Name)
		if !n.Timer {
			label = "<b>" + label + "</b>"
		}
		for _, line := range nodeLines(n) {
			label += "<br/>" + mermaidText(line)
		}
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, left, label, right)
	}
	for i, group := range g.Groups {
		fmt.Fprintf(&b, "  subgraph g%d[\"%s\"]\n", i, mermaidText(group.title()))
		for _, n := range group.Nodes {
			fmt.Fprintf(&b, "    n%d\n", n)
		}
		b.WriteString("  end\n")
	}
	most, drawn := g.most(), 0
	var styles strings.Builder
	for i, n := range g.Nodes {
		if n.Load != nil {
			fmt.Fprintf(&styles, "  style n%d fill:%s,color:%s\n", i, heatFills[n.Load.heat()], heatText)
		}
	}
	for _, e := range g.Edges {
		if !g.drawable(e) {
			continue
		}
		if e.Load != nil {
			fmt.Fprintf(&styles, "  linkStyle %d stroke-width:%spx\n", drawn, tenths(lineWidths[e.Load.traffic(most)]))
		}
		drawn++
		arrow := "-->"
		if e.Reply != "" {
			arrow = "<-->"
		}
		if e.DeadLetter {
			arrow = "-.->"
		}
		var lines []string
		for _, line := range edgeLines(e) {
			lines = append(lines, mermaidText(line))
		}
		label := ""
		if len(lines) > 0 {
			label = `|"` + strings.Join(lines, "<br/>") + `"|`
		}
		fmt.Fprintf(&b, "  n%d %s%s n%d\n", e.From, arrow, label, e.To)
	}
	b.WriteString(styles.String())
	return b.Bytes()
}

// nodeLines are the lines under a node's name, for formats with line breaks.
func nodeLines(n Node) []string {
	var lines []string
	second := shortType(n.Type)
	if n.Instances > 1 {
		second = strings.TrimSpace(fmt.Sprintf("%s ×%d", second, n.Instances))
	}
	if second != "" {
		lines = append(lines, second)
	}
	if marks := badges(n); len(marks) > 0 {
		lines = append(lines, strings.Join(marks, ", "))
	}
	if n.Load != nil {
		lines = append(lines, n.Load.lines()...)
	}
	return lines
}

// edgeLines are the lines next to an edge, for formats with line breaks.
func edgeLines(e Edge) []string {
	var lines []string
	if e.Message != "" {
		lines = append(lines, e.Message)
	}
	if e.Reply != "" {
		lines = append(lines, "← "+e.Reply)
	}
	if e.Note != "" {
		lines = append(lines, e.Note)
	}
	if e.Load != nil {
		lines = append(lines, e.Load.line())
	}
	return lines
}

// badges are the words that mark a node, without its group.
func badges(n Node) []string {
	var words []string
	n.Group = ""
	for _, b := range n.marks() {
		words = append(words, b.text)
	}
	return words
}

// mermaidText escapes a text for a quoted Mermaid label. Mermaid has no backslash escapes; a
// character can be written as #code;. A label is HTML and, at its beginning, Markdown, so the
// special characters of both are written as codes.
func mermaidText(s string) string {
	var b strings.Builder
	for i, r := range oneLine(s) {
		switch {
		case strings.ContainsRune("\"#<>&`*\\", r),
			i == 0 && strings.ContainsRune("-+~", r),
			r == '.' && isDigits(s[:i]), // "1." begins a list
			r == '_' && (i == 0 || i == len(s)-1):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
