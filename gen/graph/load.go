package graph

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Load is the period of the loads of a graph's nodes and edges.
type Load struct {
	Until   time.Time     `json:"time"`    // zero: unknown
	Elapsed time.Duration `json:"elapsed"` // age of the topology at that time
	Workers int           `json:"workers"`
}

// NodeLoad is the load of a processor.
type NodeLoad struct {
	Busy     Spread        // share of the elapsed time in handlers and sends
	Paused   Spread        // share of the elapsed time in which a receiver's queue was full
	Received uint64        // messages
	Source   bool          // it has no incoming edge
	Faults   *FaultFigures // nil: the topology does not count them
}

// Spread is a share over the instances of a processor, in thousandths.
type Spread struct{ Mean, Max int }

// EdgeLoad is the load of an edge, over all pairs of instances.
type EdgeLoad struct {
	Capacity int    `json:"capacity"` // of one queue, in messages; 0 for a timer
	Queues   int    `json:"queues"`   // pairs of instances that may have a queue
	Len      int    `json:"len"`      // queued messages in all queues
	Sent     uint64 `json:"sent"`
	Dropped  uint64 `json:"dropped"`

	Durable bool `json:"-"` // a store keeps its messages
}

// WithLoad returns the graph of t with the loads from s. A part of s that does not match t
// gives a finding. Its position is the place in the topology, or, if there is no such place,
// the file from which s was read. Order does not matter, so a reordered file still matches.
func WithLoad(t *spec.Topology, s *Snapshot, file string) (Graph, []finding.Finding) {
	g := FromTopology(t)
	g.Load = &Load{Until: s.Time, Elapsed: time.Duration(s.Elapsed), Workers: s.Workers}
	m := mismatches{topology: t.File, snapshot: file}
	m.processors(g, t, s)
	m.edges(g, t, s)
	return g, m.list()
}

// processors gives each node its load.
func (m *mismatches) processors(g Graph, t *spec.Topology, s *Snapshot) {
	left := make(map[string]*ProcessorFigures, len(s.Processors))
	for i := range s.Processors {
		p := &s.Processors[i]
		if _, twice := left[p.Name]; twice {
			m.inSnapshot("it lists processor %q twice", p.Name)
		}
		left[p.Name] = p
	}
	fed := make([]bool, len(g.Nodes))
	for _, e := range g.Edges {
		fed[e.To] = true
	}
	for i, p := range t.Processors {
		figures, ok := left[p.Name.Value]
		delete(left, p.Name.Value)
		want := instances(p)
		switch {
		case !ok:
			m.inTopology(p.Name.At, p.Pointer, "processor %q is not in the snapshot", p.Name.Value)
		case len(figures.Instances) != want:
			m.inTopology(p.Name.At, p.Pointer, "processor %q has %s in the topology, but %s in the snapshot",
				p.Name.Value, plural(want, "instance"), plural(len(figures.Instances), "instance"))
		case want > 0:
			g.Nodes[i].Load = figures.load(s.Elapsed)
			g.Nodes[i].Load.Source = !fed[i]
			g.Nodes[i].Load.Faults = figures.Faults
		}
	}
	for _, p := range s.Processors {
		if left[p.Name] != nil {
			delete(left, p.Name)
			m.inSnapshot("processor %q is not in the topology", p.Name)
		}
	}
}

func (p *ProcessorFigures) load(elapsed int64) *NodeLoad {
	l := &NodeLoad{}
	for _, in := range p.Instances {
		l.Busy.add(share(in.Busy, elapsed))
		l.Paused.add(share(in.Paused, elapsed))
		l.Received = sum(l.Received, in.Received)
	}
	l.Busy.Mean /= len(p.Instances)
	l.Paused.Mean /= len(p.Instances)
	return l
}

func (s *Spread) add(share int) {
	s.Mean += share
	s.Max = max(s.Max, share)
}

// share is part of whole in thousandths. It is at most 1000, because estimates may exceed the
// whole.
func share(part, whole int64) int {
	switch {
	case whole == 0: // the clock of a Stepper may not advance
		return 0
	case part >= whole:
		return 1000
	}
	high, low := bits.Mul64(uint64(part), 1000)
	thousandths, _ := bits.Div64(high, low, uint64(whole))
	return int(thousandths)
}

// sum is a + b, or the largest number if that overflows.
func sum(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	return s | -carry
}

// ends distinguish an edge from the other edges of its topology.
type ends struct {
	from        string // "" for a timer
	every       time.Duration
	to, message string
}

// String is the edge in the notation of a topology file.
func (e ends) String() string {
	if e.from == "" && e.message == tickName {
		return timerName(e.every, "") + " -> " + e.to
	} else if e.from == "" {
		return timerName(e.every, "") + " -> " + e.to + ": " + e.message
	}
	return e.from + " -> " + e.to + ": " + e.message
}

// edges gives each edge its load.
func (m *mismatches) edges(g Graph, t *spec.Topology, s *Snapshot) {
	left := make(map[ends][]*EdgeFigures, len(s.Edges))
	for i := range s.Edges {
		e := &s.Edges[i]
		left[e.ends()] = append(left[e.ends()], e)
	}
	edges := t.Edges
	for _, e := range g.Edges[len(t.Edges):] {
		edges = append(slices.Clip(edges), letters(e, t))
	}
	for i, e := range edges {
		k := ends{"", e.Every, t.Processors[e.To].Name.Value, g.Edges[i].Message}
		if e.From >= 0 {
			k.from = t.Processors[e.From].Name.Value
		}
		figures := left[k]
		if len(figures) == 0 {
			m.inTopology(e.At, e.Pointer, "edge %s is not in the snapshot", k)
			continue
		}
		left[k] = figures[1:]
		l := &EdgeLoad{Queues: pairs(t, e), Len: figures[0].Len, Sent: figures[0].Sent, Dropped: figures[0].Dropped}
		if l.Durable = e.Durable; e.Every == 0 && !e.Durable {
			l.Capacity = e.Capacity
		}
		g.Edges[i].Load = l
	}
	for _, e := range t.Edges {
		if k := replies(t, e); len(left[k]) > 0 { // drawn as the second arrowhead of e
			left[k] = left[k][1:]
		}
	}
	for _, e := range s.Edges {
		k := e.ends()
		for range left[k] {
			m.inSnapshot("edge %q is not in the topology", k)
		}
		delete(left, k)
	}
}

// letters is the edge of dead letters in the form of an edge of the file.
func letters(e Edge, t *spec.Topology) spec.Edge {
	p := t.Processors[e.From]
	return spec.Edge{From: e.From, To: e.To, Capacity: defaultCapacity, At: p.OnError.At, Pointer: p.OnError.Pointer}
}

// replies is the edge for the replies to messages of e, if they stay in the topology.
func replies(t *spec.Topology, e spec.Edge) ends {
	if e.Reply.Value == "" || e.From < 0 || t.Processors[e.From].External || e.Durable {
		return ends{}
	}
	return ends{from: t.Processors[e.To].Name.Value, to: t.Processors[e.From].Name.Value, message: e.Reply.Value}
}

// pairs counts the pairs of instances between which an edge may have a queue.
func pairs(t *spec.Topology, e spec.Edge) int {
	from, to := 1, t.Processors[e.To].Instances
	if e.From >= 0 && !t.Processors[e.From].External {
		from = t.Processors[e.From].Instances
	}
	switch e.Route.Kind {
	case spec.RouteLocal:
		to = 1
	case spec.RouteRange:
		to = e.Route.Count
	}
	return from * to
}

// mismatchesMax bounds the number of listed mismatches. All others are only counted.
const mismatchesMax = 20

// mismatches collects findings about mismatches.
type mismatches struct {
	topology, snapshot string
	found              []finding.Finding
	more               int
}

func (m *mismatches) add(f finding.Finding) {
	if len(m.found) == mismatchesMax {
		m.more++
		return
	}
	m.found = append(m.found, f)
}

func (m *mismatches) inTopology(at finding.Range, pointer, format string, args ...any) {
	m.add(finding.New(finding.SnapshotUnfit, m.topology, at, pointer, fmt.Sprintf(format, args...), ""))
}

func (m *mismatches) inSnapshot(format string, args ...any) {
	m.add(m.unfit(": " + fmt.Sprintf(format, args...)))
}

func (m *mismatches) list() []finding.Finding {
	if m.more > 0 {
		m.found = append(m.found, m.unfit(fmt.Sprintf(" in %s more", plural(m.more, "place"))))
	}
	return m.found
}

func (m *mismatches) unfit(how string) finding.Finding {
	return finding.New(finding.SnapshotUnfit, m.snapshot, finding.Range{}, "", "the snapshot does not match the topology"+how, "")
}

// words describes the period, for a legend.
func (l *Load) words() string {
	text := "load over " + lasting(l.Elapsed)
	if !l.Until.IsZero() {
		text += " until " + l.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	if l.Workers > 0 {
		text += ", " + plural(l.Workers, "worker")
	}
	return text
}

// lasting formats a duration with about three digits.
func lasting(d time.Duration) string {
	step := time.Nanosecond
	for _, s := range []time.Duration{time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second, time.Minute} {
		if d >= 100*s {
			step = s
		}
	}
	return shortDuration(d.Round(step).String())
}

// lines describes a processor's load.
func (l *NodeLoad) lines() []string {
	lines := []string{"busy " + l.Busy.String()}
	if l.Paused.Max > 0 {
		lines = append(lines, "paused "+l.Paused.String())
	}
	if received := l.received(); received != "" {
		lines = append(lines, received+" received")
	}
	return append(lines, l.Faults.lines()...)
}

// lines describes the failures.
func (f *FaultFigures) lines() (lines []string) {
	if f == nil {
		return nil
	}
	for _, part := range []struct {
		n         uint64
		one, many string
	}{
		{f.Restarts, "restart", "restarts"},
		{f.HealthCheckKills, "health check kill", "health check kills"},
		{f.InputTimeouts, "input timeout", "input timeouts"},
		{f.Abandoned, "abandoned", "abandoned"},
		{f.DeadLetters, "dead letter", "dead letters"},
		{f.Dropped, "dropped", "dropped"},
	} {
		switch part.n {
		case 0:
		case 1:
			lines = append(lines, "1 "+part.one)
		default:
			lines = append(lines, amount(part.n)+" "+part.many)
		}
	}
	return lines
}

// received is the number of messages, or "" for a source.
func (l *NodeLoad) received() string {
	if l.Source {
		return ""
	}
	return amount(l.Received)
}

// String is the mean, and the maximum if it differs.
func (s Spread) String() string {
	mean, most := percent(s.Mean), percent(s.Max)
	if mean == most {
		return mean
	}
	return mean + ", max " + most
}

// percent formats thousandths.
func percent(thousandths int) string {
	if 0 < thousandths && thousandths < 5 {
		return "<1 %"
	}
	return fmt.Sprintf("%d %%", (thousandths+5)/10)
}

// amount formats a count with about three digits.
func amount(n uint64) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	unit, prefix := uint64(1000), 0
	for n/unit >= 1000 {
		unit *= 1000
		prefix++
	}
	whole, rest := n/unit, n%unit/(unit/1000)
	text := fmt.Sprintf("%d.%03d", whole, rest)[:4] // "1.23", "12.3", "123."
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + "kMGTPE"[prefix:prefix+1]
}

// part is one fact about an edge's load. strained marks a problem.
type part struct {
	text     string
	strained bool
}

// parts describes an edge's load.
func (l *EdgeLoad) parts() []part {
	parts := []part{{text: amount(l.Sent) + " sent"}}
	switch {
	case l.Durable:
		parts = append(parts, part{text: amount(uint64(l.Len)) + " pending"})
	case l.Capacity > 0:
		parts = append(parts, part{l.depth() + " queued", l.full()})
	}
	if l.Dropped > 0 {
		parts = append(parts, part{amount(l.Dropped) + " dropped", true})
	}
	return parts
}

// line is all parts on one line.
func (l *EdgeLoad) line() string {
	var texts []string
	for _, p := range l.parts() {
		texts = append(texts, p.text)
	}
	return strings.Join(texts, ", ")
}

// depth is the number of queued messages and the capacity.
func (l *EdgeLoad) depth() string {
	switch {
	case l.Capacity == 0:
		return amount(uint64(l.Len))
	case l.Queues == 1:
		return fmt.Sprintf("%s of %d", amount(uint64(l.Len)), l.Capacity)
	}
	return fmt.Sprintf("%s of %d×%d", amount(uint64(l.Len)), l.Queues, l.Capacity)
}

// full reports whether the queues together are almost full.
func (l *EdgeLoad) full() bool {
	return l.Len > 0 && l.Len/l.Queues >= l.Capacity-l.Capacity/10
}

// heats is the number of the last step of the scale from cool to hot.
const heats = 10

// heat is the step of a processor.
func (l *NodeLoad) heat() int { return (l.Busy.Mean*heats + 500) / 1000 }

// traffics is the number of the last step of the scale of lines.
const traffics = 5

// traffic is the step of an edge in a graph whose busiest edge has carried most messages. It
// is 0 for no messages, and otherwise grows with the square root of the edge's share.
func (l *EdgeLoad) traffic(most uint64) int {
	sent := l.Sent
	for most >= 1<<58 { // 25 times the result does not overflow
		most, sent = most>>1, sent>>1
	}
	for step := uint64(1); step <= traffics; step++ {
		if sent*traffics*traffics <= step*step*most && l.Sent > 0 {
			return int(step)
		}
	}
	return 0
}

// most is the number of messages of the busiest edge.
func (g Graph) most() uint64 {
	most := uint64(0)
	for _, e := range g.Edges {
		if e.Load != nil {
			most = max(most, e.Load.Sent)
		}
	}
	return most
}
