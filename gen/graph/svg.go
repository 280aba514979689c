package graph

import (
	"bytes"
	"fmt"
	"strings"
)

// headingHigh is the height of the heading above the picture.
const headingHigh = 40

// SVG returns the graph as a picture that needs no scripts, fonts or other files. It is light
// or dark like the page that shows it.
func SVG(g Graph) []byte {
	return draw(g, arrange(g))
}

func draw(g Graph, l layout) []byte {
	c := canvas{graph: g, layout: l, most: g.most()}
	name := oneLine(g.Name)
	heading := nameFont.fit(name, max(l.width, 400))
	legend := c.legend()
	width := max(l.width, legend.w+2*margin, 2*margin+nameFont.width(heading)*8/7, 2*margin+typeFont.width(g.counts()))
	height := l.height + headingHigh
	if legend.h > 0 {
		height += legend.h + margin
	}
	title, css := strings.TrimSpace("Topology "+name)+": "+g.counts(), style
	if g.watched() {
		css += watchStyle
	}
	if g.placed() {
		css += clusterStyle
	}
	if g.machines() {
		css += machineStyle
	}
	if g.Load != nil {
		title += "; " + g.Load.words()
		css += loadStyle()
	}
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" class="topogen" width="%d" height="%d" viewBox="0 %d %d %d" role="img" aria-label="%s">`+"\n",
		width, height, -headingHigh, width, height, xmlText(title))
	c.printf("<title>%s</title>\n<style>%s</style>\n", xmlText(title), css)
	c.printf(`<rect class="page" x="0" y="%d" width="%d" height="%d" rx="10"/>`+"\n", -headingHigh, width, height)
	if heading != "" {
		c.printf(`<text class="heading" x="%d" y="-10">%s</text>`+"\n", margin, xmlText(heading))
	}
	c.printf(`<text class="counts" x="%d" y="8">%s</text>`+"\n", margin, xmlText(g.counts()))
	// Edges against the flow are drawn first, below the others.
	for _, back := range []bool{true, false} {
		for i := range g.Edges {
			if l.lines[i] != nil && l.back[i] == back {
				c.edge(i)
			}
		}
	}
	for i := range g.Nodes {
		c.node(i)
	}
	c.drawLegend(legend)
	c.printf("</svg>\n")
	return c.Bytes()
}

// canvas collects the elements of a picture.
type canvas struct {
	bytes.Buffer
	graph  Graph
	layout layout
	most   uint64 // number of messages of the busiest edge
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.Buffer, format, args...) }

// xmlText escapes a text for content and for attributes in double quotes.
func xmlText(s string) string {
	return xmlEscaper.Replace(oneLine(s))
}

var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// node draws a box, or the rounded box of a timer.
func (c *canvas) node(i int) {
	n, r := c.graph.Nodes[i], c.layout.boxes[i]
	text := n.caption()
	class := "node"
	switch {
	case n.Timer:
		class += " timer"
	default:
		for _, b := range text.badges {
			if !strings.HasSuffix(class, " "+b.class) {
				class += " " + b.class
			}
		}
		if n.Load != nil {
			class += fmt.Sprintf(" heat heat-%d", n.Load.heat())
		}
	}
	c.printf(`<g class="%s"><title>%s</title>`, class, xmlText(strings.Join(append([]string{n.Name}, fullLines(n)...), ", ")))
	defer c.printf("</g>\n")
	if n.Timer {
		c.printf(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, r.x, r.y, r.w, r.h, timerHigh/2)
		x, y := r.x+timerPad+5, r.y+r.h/2
		c.printf(`<path class="clock" d="M%d %da5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11M%d %dv-3M%d %dh2.5"/>`, x, y-5, x, y, x, y)
		c.printf(`<text x="%d" y="%d">%s</text>`, r.x+timerPad+clockRoom, y+4, xmlText(text.name))
		return
	}
	front := rect{r.x, r.y, r.w - n.stack(), r.h - n.stack()}
	if n.stack() > 0 {
		c.printf(`<rect class="card" x="%d" y="%d" width="%d" height="%d" rx="7"/>`,
			r.x+stackShift, r.y+stackShift, front.w, front.h)
	}
	if n.Machine != nil {
		c.cylinder(front)
	} else {
		c.printf(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="7"/>`, front.x, front.y, front.w, front.h)
	}
	// The box may be higher than its text because it has many edges.
	top := front.y + (front.h-text.high()-text.loadHigh())/2
	x, y := front.x+boxPad, top+text.high()/2+5
	if n.Load != nil {
		c.nodeLoad(n.Load, text, rect{x, top + text.high(), front.w - 2*boxPad, text.loadHigh()})
	}
	second := text.typ != "" || text.count != ""
	if second {
		y -= 9
	}
	c.printf(`<text class="name" x="%d" y="%d">%s</text>`, x, y, xmlText(text.name))
	right := front.x + front.w - badgeRoom
	for k := len(text.badges) - 1; k >= 0; k-- {
		b := text.badges[k]
		w := badgeWidth(b.text)
		c.printf(`<rect class="badge%s" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, b.look, right-w, y-12, w, badgeHigh)
		c.printf(`<text class="badge-text%s" x="%d" y="%d" text-anchor="middle">%s</text>`, b.look, right-w/2, y, xmlText(b.text))
		right -= w + badgePad
	}
	if second {
		c.printf(`<text class="type" x="%d" y="%d">%s`, x, y+18, xmlText(text.typ))
		if text.count != "" {
			c.printf(`<tspan class="count" dx="%d">%s</tspan>`, min(len(text.typ), 1)*countRoom, text.count)
		}
		c.printf("</text>")
	}
}

// fullLines are the lines of a node's tooltip, without cuts.
func fullLines(n Node) []string {
	var lines []string
	if n.Type != "" {
		lines = append(lines, n.Type)
	}
	if n.Instances > 1 {
		lines = append(lines, fmt.Sprintf("%d instances", n.Instances))
	}
	lines = append(lines, badges(n)...)
	if n.Group != "" {
		lines = append(lines, "group "+n.Group)
	}
	if n.Load != nil {
		lines = append(lines, n.Load.lines()...)
	}
	return lines
}

// edge draws a line with its arrowheads and label.
func (c *canvas) edge(i int) {
	e, line := c.graph.Edges[i], c.layout.lines[i]
	class := "edge"
	if c.layout.back[i] {
		class += " back"
	}
	if e.DeadLetter {
		class += " letters"
	}
	extra := 0
	if e.Load != nil {
		step := e.Load.traffic(c.most)
		class += fmt.Sprintf(" traffic traffic-%d", step)
		extra = max(0, step-3) // keeps the head wider than its line
	}
	from, to := c.graph.Nodes[e.From].Name, c.graph.Nodes[e.To].Name
	c.printf(`<g class="%s"><title>%s</title>`, class,
		xmlText(strings.Join(append([]string{from + " → " + to}, edgeLines(e)...), ", ")))
	path := rounded(shorten(line, e.Reply != ""))
	c.printf(`<path class="under" d="%s"/><path class="line" d="%s"/>`, path, path)
	c.printf(`<path class="head" d="%s"/>`, arrowhead(line[len(line)-2], line[len(line)-1], extra))
	if e.Reply != "" {
		c.printf(`<path class="reply-head" d="%s"/>`, arrowhead(line[1], line[0], extra))
	}
	c.label(i)
	c.printf("</g>\n")
}

// label writes the text of an edge. In a picture to the right it is centred, with the message
// above the line and the rest below. In a picture downwards it is next to the line.
func (c *canvas) label(i int) {
	message, below := c.graph.Edges[i].lines()
	r, at := c.layout.labels[i], c.layout.anchors[i]
	if r == (rect{}) {
		return
	}
	x, y, anchor := at.x, at.y-6, ` text-anchor="middle"`
	next := at.y + lineHigh
	if c.layout.direction == downward {
		x, y, anchor = r.x+2+labelPad, r.y+lineHigh, ""
		next = y + lineHigh
	}
	if message != "" {
		c.printf(`<text class="message" x="%d" y="%d"%s>%s</text>`, x, y, anchor, xmlText(message))
	}
	for _, line := range below {
		c.printf(`<text class="%s" x="%d" y="%d"%s>%s</text>`, line.class, x, next, anchor, xmlText(line.text))
		next += lineHigh
	}
}
