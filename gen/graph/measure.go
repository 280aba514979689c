package graph

import (
	"fmt"
	"strings"
)

// Fonts and lengths of pictures, in pixels. Text is cut if it would make a box or label too
// wide.
var (
	nameFont  = font{size: 14, bold: true}
	typeFont  = font{size: 12}
	badgeFont = font{size: 10, bold: true}
	edgeFont  = font{size: 12}
	noteFont  = font{size: 11}

	strainFont = font{size: 11, bold: true} // for loads with a problem
)

const (
	boxPad     = 14  // on both sides of the text of a box
	boxLow     = 36  // height of a box with one line
	boxHigh    = 50  // height of a box with two lines
	boxMin     = 84  // narrowest box
	textMax    = 220 // widest line of a box
	timerHigh  = 26
	timerPad   = 12
	clockRoom  = 18 // clock and distance to the text of a timer
	badgeHigh  = 16
	badgePad   = 6
	badgeRoom  = 8  // before a badge
	badgeMax   = 90 // widest text of a badge
	stackShift = 4  // between the cards of a box with several instances

	gaugeHigh = 6  // height of the bar for busy and paused
	gaugeRoom = 14 // height of the bar with its margins

	labelMax  = 170 // widest line of a label
	labelPad  = 6   // on both sides of the text of a label
	lineHigh  = 14
	noteWidth = 120 // a wider note breaks between its parts
)

// caption is the text of a box, cut to fit.
type caption struct {
	name, typ, count string
	badges           []badge
	load             []string // lines below
}

// badge is a mark next to a name.
type badge struct {
	text  string
	class string // class of the box
	look  string // additional classes of the badge
}

// marks are the badges of a node.
func (n Node) marks() []badge {
	var list []badge
	if n.External {
		list = append(list, badge{"external", "external", ""})
	}
	if n.Blocking {
		list = append(list, badge{"blocking", "blocking", " wait"})
	}
	if n.Isolated {
		list = append(list, badge{"process", "process", " apart"})
	}
	for _, word := range n.Machine.words() {
		list = append(list, badge{word, "machine", " kept"})
	}
	if place := n.Placement.words(); place != "" {
		list = append(list, badge{badgeFont.fit(oneLine(place), badgeMax), "placed", " place"})
	}
	if n.Group != "" {
		list = append(list, badge{badgeFont.fit(oneLine(n.Group), badgeMax), "grouped", " group"})
	}
	return list
}

func (n Node) caption() caption {
	c := caption{name: nameFont.fit(oneLine(n.Name), textMax), badges: n.marks()}
	if n.Timer {
		return caption{name: typeFont.fit(oneLine(n.Name), textMax)}
	}
	if n.Instances > 1 {
		c.count = fmt.Sprintf("×%d", n.Instances)
	}
	if n.Load != nil {
		c.load = n.Load.lines()
	}
	c.typ = typeFont.fit(oneLine(shortType(n.Type)), textMax-typeFont.width(c.count))
	return c
}

// countRoom is the distance between the type and the count.
const countRoom = 6

// size is the width and height of a box.
func (n Node) size() (w, h int) {
	c := n.caption()
	if n.Timer {
		return typeFont.width(c.name) + clockRoom + 2*timerPad, timerHigh
	}
	w = nameFont.width(c.name)
	for _, b := range c.badges {
		w += badgeRoom + badgeWidth(b.text)
	}
	second := typeFont.width(c.typ)
	if c.count != "" {
		second += countRoom + typeFont.width(c.count)
	}
	for _, line := range c.load {
		second = max(second, noteFont.width(line))
	}
	return max(w+2*boxPad, second+2*boxPad, boxMin) + n.stack(), c.high() + c.loadHigh() + n.stack()
}

// high is the height of a box without its load.
func (c caption) high() int {
	if c.typ != "" || c.count != "" {
		return boxHigh
	}
	return boxLow
}

// loadHigh is the height that the load adds.
func (c caption) loadHigh() int {
	if len(c.load) == 0 {
		return 0
	}
	return lineHigh*len(c.load) + gaugeRoom
}

// stack is the space for the cards behind a box.
func (n Node) stack() int {
	if n.Instances > 1 && !n.Timer {
		return stackShift
	}
	return 0
}

func badgeWidth(s string) int { return badgeFont.width(s) + 2*badgePad }

// remark is a line of text next to an edge.
type remark struct{ class, text string }

// lines is the text next to an edge: the message, and remarks below it.
func (e Edge) lines() (message string, below []remark) {
	add := func(class string, lines ...string) {
		for _, line := range lines {
			below = append(below, remark{class, line})
		}
	}
	if e.Message != "" {
		message = edgeFont.fit(oneLine(e.Message), labelMax)
	}
	if e.Reply != "" {
		add("reply", edgeFont.fit("← "+oneLine(e.Reply), labelMax))
	}
	add("note", noteFont.wrap(oneLine(e.Note), noteWidth)...)
	if e.Load != nil {
		for _, part := range e.Load.parts() {
			if part.strained {
				add("load strained", strainFont.fit(part.text, labelMax))
			} else {
				add("load", noteFont.fit(part.text, labelMax))
			}
		}
	}
	return message, below
}

// measure computes the space of every node and label in one direction.
func measure(g Graph, dir direction) *diagram {
	d := &diagram{direction: dir, edges: g.Edges}
	for _, n := range g.Nodes {
		w, h := n.size()
		if dir == downward {
			w, h = h, w
		}
		d.nodes = append(d.nodes, extent{along: w, before: h / 2, after: h - h/2})
		d.small = append(d.small, n.Timer)
		d.stacks = append(d.stacks, n.stack())
	}
	for _, e := range g.Edges {
		d.labels = append(d.labels, e.extent(dir))
	}
	return d
}

// extent is the space of an edge's label. In a picture to the right, the line runs between
// the message and the remarks. In a picture downwards, it runs to the left of both.
func (e Edge) extent(dir direction) extent {
	message, below := e.lines()
	if message == "" && len(below) == 0 {
		return extent{}
	}
	w := edgeFont.width(message)
	for _, line := range below {
		w = max(w, edgeFont.width(line.text))
		if strings.HasSuffix(line.class, "strained") {
			w = max(w, strainFont.width(line.text))
		}
	}
	w += 2 * labelPad
	if dir == downward {
		return extent{along: lineHigh*(1+len(below)) + labelPad, before: 2, after: w}
	}
	x := extent{along: w, before: lineHigh + 4, after: 3}
	if len(below) > 0 {
		x.after = lineHigh*len(below) + 5
	}
	return x
}
