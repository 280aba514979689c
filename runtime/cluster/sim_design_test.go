package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// design is a random topology.
type design struct {
	nodes    int
	parts    []designPart
	edges    []designEdge
	groups   []int // by processor
	messages int   // that each instance of a source sends
	load     int   // most bytes of a message
	batch    int
	hops     int  // how often a message is passed on at most
	chain    bool // a group has few messages, each of which is passed on once; otherwise it is passed on up to twice
}

type designPart struct {
	name      string
	instances int
	source    bool
	external  bool
	placement Placement
	node      string        // of OnNode
	with      int           // index of the processor whose places it has
	slow      time.Duration // most time that a handler takes
	load      int           // bytes of each message; 0: they are drawn
	idles     bool          // its Ping returns topo.Idle now and then
	every     time.Duration // its instances get ticks, and send a message at each of them; 0: none
}

// everyNode reports whether each node has all instances.
func (p *designPart) everyNode() bool { return p.placement == EveryNode && !p.external }

type designEdge struct {
	from, to int
	capacity int
	full     full
	reply    bool
	once     bool // delivery: at-most-once
}

const (
	designPartsMax     = 6
	designInstancesMax = 5
	designLoadMax      = 200 << 10
	designHopsMax      = 3
	designChainMax     = 60 // a message goes through a cycle for so long that other messages end before
)

func nodeName(i int) string { return fmt.Sprint("n", i+1) }

// drawDesign draws a topology.
func drawDesign(r *rand.Rand, nodes int) *design {
	d := &design{nodes: nodes, messages: 1 + r.IntN(60), load: []int{0, 8, 100, 2000}[r.IntN(4)], batch: 1 + r.IntN(1+r.IntN(64))}
	if r.IntN(12) == 0 {
		d.load, d.messages = designLoadMax, 1+r.IntN(10)
	}
	d.hops = designHopsMax
	n := 1 + r.IntN(designPartsMax)
	if d.chain = r.IntN(4) == 0; d.chain {
		d.hops, d.messages, n = designChainMax, 1+r.IntN(2), 1+r.IntN(3)
	}
	for i := range n {
		p := designPart{name: fmt.Sprint("p", i), instances: 1 + r.IntN(designInstancesMax), with: i}
		switch r.IntN(8) {
		case 0:
			p.placement = EveryNode
			p.instances = 1 + r.IntN(2)
		case 1, 2:
			p.placement, p.node = OnNode, nodeName(r.IntN(nodes))
		}
		if r.IntN(6) == 0 {
			p.slow = time.Duration(1+r.IntN(50)) * time.Millisecond / 10
		}
		p.idles = r.IntN(4) == 0
		d.parts = append(d.parts, p)
	}
	d.drawEdges(r)
	d.drawSources(r)
	d.groups = d.components()
	return d
}

func (d *design) drawEdges(r *rand.Rand) {
	n, more := len(d.parts), 1+r.IntN(2*len(d.parts))
	if d.chain { // a ring
		for i := range n {
			d.edges = append(d.edges, designEdge{from: i, to: (i + 1) % n, capacity: 1 + r.IntN(16)})
		}
		more = r.IntN(2)
	}
	for range more {
		from, to := r.IntN(n), r.IntN(n)
		if from > to && r.IntN(4) > 0 {
			from, to = to, from // most edges lead downstream
		}
		for more := true; more; more = r.IntN(4) == 0 {
			d.edges = append(d.edges, designEdge{from: from, to: to, capacity: []int{1, 2, 3, 7, 16, 64}[r.IntN(6)]})
		}
	}
	for i := range d.edges {
		e := &d.edges[i]
		if r.IntN(4) == 0 {
			e.full = full(1 + r.IntN(3))
		}
		e.once = r.IntN(5) == 0
	}
}

// drawSources makes sources and external processors of those without inputs. Others may
// be sources, too.
func (d *design) drawSources(r *rand.Rand) {
	fed := make([]bool, len(d.parts))
	for _, e := range d.edges {
		fed[e.to] = true
	}
	for i := range d.parts {
		p := &d.parts[i]
		switch {
		case !fed[i] && r.IntN(3) == 0:
			*p = designPart{name: p.name, external: true, placement: EveryNode, with: i}
			for j := range d.edges {
				if d.edges[j].from == i {
					d.edges[j].reply = r.IntN(2) == 0 && !d.parts[d.edges[j].to].everyNode()
				}
			}
		case !fed[i] || d.chain && i == 0 || r.IntN(6) == 0:
			p.source = true
		}
	}
}

// between returns the edges from one processor to another.
func (d *design) between(from, to int) (edges []int) {
	for i := range d.edges {
		if d.edges[i].from == from && d.edges[i].to == to {
			edges = append(edges, i)
		}
	}
	return edges
}

// inCycle reports whether an edge is within a group.
func (d *design) inCycle(edge int) bool {
	e := &d.edges[edge]
	return d.groups[e.from] == d.groups[e.to]
}

// isCyclic reports whether a processor is in a group with a cycle.
func (d *design) isCyclic(of int) bool {
	for i := range d.edges {
		if d.inCycle(i) && d.groups[d.edges[i].to] == d.groups[of] {
			return true
		}
	}
	return false
}

// dropsOldest reports whether an edge between two processors has drop-oldest.
func (d *design) dropsOldest(from, to int) bool {
	return slices.ContainsFunc(d.between(from, to), func(i int) bool { return d.edges[i].full == dropOldest })
}

// components numbers the strongly connected components, upstream first.
func (d *design) components() []int {
	n := len(d.parts)
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
		reach[i][i] = true
	}
	for _, e := range d.edges {
		reach[e.from][e.to] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	groups := make([]int, n)
	for i := range groups {
		groups[i] = -1
	}
	for next := 0; next < n; {
		before := next
		for i := range n {
			if groups[i] >= 0 || !d.isFirst(reach, groups, i) {
				continue
			}
			for j := range n {
				if reach[i][j] && reach[j][i] {
					groups[j] = next
				}
			}
			next++
		}
		if next == before {
			break // all have a group
		}
	}
	return groups
}

// isFirst reports whether all processors upstream of i, outside of its component, have a
// group.
func (d *design) isFirst(reach [][]bool, groups []int, i int) bool {
	for j := range d.parts {
		if reach[j][i] && !reach[i][j] && groups[j] < 0 {
			return false
		}
	}
	return true
}

// config is the configuration of the nodes.
func (d *design) config() Config {
	c := Config{Topology: "sim", Plan: "plan", Nodes: map[string]string{}}
	for i := range d.nodes {
		c.Nodes[nodeName(i)] = nodeName(i) + ":1"
	}
	for i := range d.parts {
		p := &d.parts[i]
		c.Processors = append(c.Processors, Processor{Name: p.name, Instances: p.instances, Placement: p.placement, Node: p.node, With: p.with})
	}
	for _, e := range d.edges {
		c.Edges = append(c.Edges, fmt.Sprintf("p%d -> p%d", e.from, e.to))
	}
	return c
}

// String describes the topology of a seed that failed.
func (d *design) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes, %d messages of up to %d bytes from each source, batch %d, up to %d hops\n", d.nodes, d.messages, d.load, d.batch, d.hops)
	for i, p := range d.parts {
		fmt.Fprintf(&b, "%s: %d instances, group %d", p.name, p.instances, d.groups[i])
		switch {
		case p.external:
			b.WriteString(", external")
		case p.placement == EveryNode:
			b.WriteString(", on every node")
		case p.placement == OnNode:
			b.WriteString(", on " + p.node)
		}
		if p.source {
			b.WriteString(", source")
		}
		if p.slow > 0 {
			fmt.Fprintf(&b, ", up to %v", p.slow)
		}
		b.WriteByte('\n')
	}
	for i, e := range d.edges {
		fmt.Fprintf(&b, "e%d: p%d -> p%d, capacity %d, full: %v", i, e.from, e.to, e.capacity, e.full)
		if e.reply {
			b.WriteString(", reply")
		}
		if e.once {
			b.WriteString(", at most once")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
