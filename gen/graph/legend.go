package graph

import (
	"fmt"
	"strings"
)

// heatFills are the fills of boxes from idle to always busy. They go from blue to
// orange, which people with red-green blindness can distinguish. Each is darker than the
// previous one, for people who cannot see colours. heatText is the colour of text on them.
// heatDark are the fills for dark pictures, each brighter than the previous one.
var (
	heatFills = [heats + 1]string{"#e3f0ff", "#e7ede9", "#ebead2", "#efe6bc", "#f3e3a6", "#f3d38d", "#f3c475", "#f3b45c", "#f0a14d", "#ed8d3d", "#ea7a2e"}
	heatDark  = [heats + 1]string{"#14263f", "#1f2b37", "#2a302f", "#353427", "#40391f", "#4e3d1d", "#5d401a", "#6b4418", "#7f4814", "#944c10", "#a8500c"}
)

const (
	heatText     = "#172033"
	heatTextDark = "#eef2fa"
)

// lineWidths are the widths of edges, from no messages to the most, in tenths of pixels.
var lineWidths = [traffics + 1]int{10, 15, 22, 30, 40, 50}

func tenths(n int) string { return fmt.Sprintf("%d.%d", n/10, n%10) }

// loadStyle is the additional style of a picture with a load.
func loadStyle() string {
	var b strings.Builder
	b.WriteString(`.topogen .load{font-size:11px;fill:#4a566e}
.topogen .strained{font-weight:700;fill:#9a3412}
.topogen .heat .name,.topogen .heat .type,.topogen .heat .count,.topogen .heat .load{fill:` + heatText + `}
.topogen .heat .badge,.topogen .blocking.heat .badge.wait{fill:#fff}
.topogen .gauge{fill:#fff;stroke:#172033;stroke-width:1}
.topogen .part{fill:#172033}
.topogen .traffic-0 .line{stroke-dasharray:4 4}
.topogen .edge.traffic:hover .line{stroke-width:6}
`)
	for step, fill := range heatFills {
		fmt.Fprintf(&b, ".topogen .heat-%d .box,.topogen .heat-%d .card{fill:%s}\n", step, step, fill)
	}
	for step, width := range lineWidths {
		fmt.Fprintf(&b, ".topogen .traffic-%d .line{stroke-width:%s}\n", step, tenths(width))
		fmt.Fprintf(&b, ".topogen .traffic-%d .under{stroke-width:%s}\n", step, tenths(width+35))
	}
	b.WriteString(`@media (prefers-color-scheme:dark){
.topogen .load{fill:#b4c0d6}
.topogen .strained{fill:#ffb27a}
.topogen .heat .name,.topogen .heat .type,.topogen .heat .count,.topogen .heat .load{fill:` + heatTextDark + `}
.topogen .heat .badge,.topogen .blocking.heat .badge.wait{fill:#0f141d}
.topogen .gauge{fill:#0f141d;stroke:#eef2fa}
.topogen .part{fill:#eef2fa}
`)
	for step, fill := range heatDark {
		fmt.Fprintf(&b, ".topogen .heat-%d .box,.topogen .heat-%d .card{fill:%s}\n", step, step, fill)
	}
	b.WriteString("}\n")
	return b.String()
}

// nodeLoad writes the load of a processor into r: lines, and a bar below.
func (c *canvas) nodeLoad(l *NodeLoad, text caption, r rect) {
	for k, line := range text.load {
		c.printf(`<text class="load" x="%d" y="%d">%s</text>`, r.x, r.y+lineHigh*k+lineHigh/2+1, xmlText(line))
	}
	c.gauge(rect{r.x, r.y + r.h - gaugeRoom + 1, r.w, gaugeHigh}, l)
}

// gauge draws a bar: the busy share in full height, then the paused share in half height,
// and a tick at the busiest instance.
func (c *canvas) gauge(r rect, l *NodeLoad) {
	c.printf(`<rect class="gauge" x="%d" y="%d" width="%d" height="%d"/>`, r.x, r.y, r.w, r.h)
	busy := r.w * l.Busy.Mean / 1000
	paused := r.w*min(l.Busy.Mean+l.Paused.Mean, 1000)/1000 - busy
	if busy > 0 {
		c.printf(`<rect class="part" x="%d" y="%d" width="%d" height="%d"/>`, r.x, r.y, busy, r.h)
	}
	if paused > 0 {
		c.printf(`<rect class="part" x="%d" y="%d" width="%d" height="%d"/>`, r.x+busy, r.y+r.h/2, paused, r.h-r.h/2)
	}
	if percent(l.Busy.Max) != percent(l.Busy.Mean) {
		c.printf(`<rect class="part" x="%d" y="%d" width="2" height="%d"/>`, r.x+(r.w-2)*l.Busy.Max/1000, r.y-2, r.h+4)
	}
}

// Lengths of the legend, in pixels.
const (
	legendRow  = 22
	legendRows = 4
	swatchWide = 14
	swatchHigh = 12
	sampleWide = 34                                 // of a sample line
	legendText = heats*swatchWide + swatchWide + 12 // where its text begins
)

// legend is the rectangle of the legend, below everything else. It is empty without a load.
func (c *canvas) legend() rect {
	if c.graph.Load == nil {
		return rect{}
	}
	w := 0
	for _, line := range c.legendWords() {
		w = max(w, legendText+typeFont.width(line))
	}
	w = max(w, nameFont.width(c.graph.Load.words()))
	return rect{margin, c.layout.height, w, legendRow * legendRows}
}

// legendWords are the texts next to the samples.
func (c *canvas) legendWords() []string {
	return []string{
		"box: busy, the mean over the instances, 0 to 100 %",
		"bar: busy, then paused because a receiver is full; the tick: the busiest instance",
		"line: messages sent, from none to " + amount(c.most),
	}
}

func (c *canvas) drawLegend(r rect) {
	if r.h == 0 {
		return
	}
	c.printf(`<g class="legend">`)
	defer c.printf("</g>\n")
	load := c.graph.Load.words()
	c.printf(`<text class="name" x="%d" y="%d">%s</text>`, r.x, r.y+12, xmlText(strings.ToUpper(load[:1])+load[1:]))
	words := c.legendWords()
	base := func(row int) int { return r.y + legendRow*row + 12 }
	for i, line := range words {
		c.printf(`<text class="type" x="%d" y="%d">%s</text>`, r.x+legendText, base(i+1), xmlText(line))
	}
	for step := range heats + 1 {
		c.printf(`<g class="heat-%d"><rect class="box" x="%d" y="%d" width="%d" height="%d"/></g>`,
			step, r.x+step*swatchWide, base(1)-swatchHigh+2, swatchWide, swatchHigh)
	}
	sample := &NodeLoad{Busy: Spread{450, 800}, Paused: Spread{200, 300}}
	c.gauge(rect{r.x, base(2) - swatchHigh + 5, (heats + 1) * swatchWide, gaugeHigh}, sample)
	for i, step := range []int{0, 1, 3, traffics} {
		c.printf(`<g class="traffic-%d"><path class="line" d="M%d %dh%d"/></g>`, step, r.x+i*(sampleWide+6), base(3)-4, sampleWide)
	}
}
