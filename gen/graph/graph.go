package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/spec"
)

// Graph is a topology as a plain value for drawing. The zero value is an empty picture. The
// function JSON writes it, so the names in the tags must not change.
type Graph struct {
	Name   string  `json:"name"`
	Load   *Load   `json:"load,omitempty"` // nil: the load is unknown
	Nodes  []Node  `json:"nodes"`
	Edges  []Edge  `json:"edges"`
	Groups []Group `json:"groups,omitempty"` // restart groups

	Cluster *Cluster `json:"cluster,omitempty"` // nil: the topology runs in one process
}

// Group is a restart group.
type Group struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	Nodes    []int  `json:"nodes"` // indices into Graph.Nodes
}

// title is the text above a group.
func (g Group) title() string { return g.Name + ", " + g.Strategy }

// Node is a processor, or the source of a timer.
type Node struct {
	Name      string `json:"name"`
	Type      string `json:"type"`      // the Go type, with its import path; may be empty
	Instances int    `json:"instances"` // shown when greater than 1; 0 for an external processor and a timer
	Blocking  bool   `json:"blocking"`  // instances have their own goroutines
	External  bool   `json:"external"`  // messages come from outside
	Timer     bool   `json:"timer"`     // not a processor: "every 1s", drawn small

	Isolated bool      `json:"isolated,omitempty"` // instances run in their own processes
	Group    string    `json:"group,omitempty"`    // name of its restart group; empty: none
	Watch    *Watch    `json:"watch,omitempty"`    // nil: the file has no settings for its failures
	Machine  *Machine  `json:"machine,omitempty"`  // nil: not a state machine
	Load     *NodeLoad `json:"load,omitempty"`     // nil: unknown

	Placement *Placement `json:"placement,omitempty"` // nil: there is no cluster, or a timer
}

// Watch has a processor's settings for failures, with the values of the file. In JSON,
// durations are in nanoseconds.
type Watch struct {
	Restart     string        `json:"restart"`      // policy
	MaxRestarts int           `json:"max_restarts"` // 0: any number
	Delay       time.Duration `json:"delay"`
	MaxDelay    time.Duration `json:"max_delay"` // 0: none, as for the fields below
	Window      time.Duration `json:"window"`
	Timeout     time.Duration `json:"timeout"` // for a call
	Startup     time.Duration `json:"startup_timeout"`
	OnError     string        `json:"on_error"`
	MaxAttempts int           `json:"max_attempts"` // 0: not set
}

// Edge carries one message type from a node to a node.
type Edge struct {
	From    int    `json:"from"` // index into Graph.Nodes, like To; they may be equal
	To      int    `json:"to"`
	Message string `json:"message"` // name of the message type
	Reply   string `json:"reply"`   // name of the reply's type; empty: none
	Note    string `json:"note"`    // "key Account", "drop-oldest 64"; parts separated by ", "

	Implied      bool          `json:"implied,omitempty"`       // between a state machine and its controller; not an edge of the file
	Aside        bool          `json:"-"`                       // omitted from pictures, which have one pair of edges for a state machine
	DeadLetter   bool          `json:"dead_letter,omitempty"`   // for messages that From cannot handle; not an edge of the file
	InputTimeout time.Duration `json:"input_timeout,omitempty"` // 0: none
	Crosses      bool          `json:"crosses,omitempty"`       // messages may go to another node
	Delivery     string        `json:"delivery,omitempty"`      // of an edge that crosses
	Durable      bool          `json:"durable,omitempty"`       // a store keeps its messages
	Load         *EdgeLoad     `json:"load,omitempty"`          // nil: unknown
}

// Names of messages that a file does not declare.
const (
	tickName       = "Tick"
	deadLetterName = "DeadLetter"
)

// timerName is a timer in the notation of the file.
func timerName(every time.Duration, name string) string {
	if name != "" {
		name = " as " + name
	}
	return "every " + shortDuration(every.String()) + name
}

// defaultCapacity is the default capacity, which is not shown.
const defaultCapacity = 1024

// FromTopology returns the graph of a checked topology. The nodes are the processors, so
// that a node's index is its ProcessorIndex, followed by a node for each timer. The edges
// are the edges of the file in order, followed by an edge for each processor with dead
// letters.
func FromTopology(t *spec.Topology) Graph {
	g := Graph{Name: t.Name.Value}
	for _, p := range t.Processors {
		typ := p.Type.Value
		if typ == "" && !p.External {
			typ = p.Ident
		}
		g.Nodes = append(g.Nodes, Node{
			Name:      p.Name.Value,
			Type:      typ,
			Instances: instances(p),
			Blocking:  p.Blocking,
			External:  p.External,
			Isolated:  p.Isolation == spec.Process,
			Watch:     watch(p, false),
		})
		if p.Machine != nil {
			g.Nodes[len(g.Nodes)-1].ofMachine(p)
		}
	}
	for _, group := range t.Groups {
		drawn := Group{Name: group.Name.Value, Strategy: string(group.Strategy), Nodes: group.Processors}
		g.Groups = append(g.Groups, drawn)
		for _, p := range group.Processors {
			g.Nodes[p].Group = drawn.Name
			g.Nodes[p].Watch = watch(t.Processors[p], true)
		}
	}
	for _, e := range t.Edges {
		edge := Edge{From: e.From, To: e.To, Message: e.Message.Value, Reply: e.Reply.Value, Durable: e.Durable}
		if e.Every > 0 {
			edge.From = len(g.Nodes)
			edge.Message = e.Tick()
			g.Nodes = append(g.Nodes, Node{Name: timerName(e.Every, e.Timer.Value), Timer: true})
		} else if edge.Implied = e.Implied; e.Implied {
			edge.Aside = isAside(t, e)
			if t.Processors[e.To].Machine != nil {
				edge.Note = note(spec.Edge{Route: e.Route})
			}
		} else {
			edge.Note = note(e)
		}
		if edge.InputTimeout = e.InputTimeout; edge.InputTimeout > 0 {
			edge.Note = strings.TrimPrefix(edge.Note+", input timeout "+shortDuration(e.InputTimeout.String()), ", ")
		}
		g.Edges = append(g.Edges, edge)
	}
	g.addCluster(t)
	for i, p := range t.Processors {
		if to := p.OnError.DeadLetterTo; p.OnError.DeadLetter.Value != "" && to >= 0 {
			g.Edges = append(g.Edges, Edge{From: i, To: to, Message: deadLetterName, DeadLetter: true})
		}
	}
	return g
}

// watch is nil if a failure of the processor ends the topology.
func watch(p spec.Processor, grouped bool) *Watch {
	if !grouped && !p.Restart.Given && !p.OnError.Given && p.Isolation != spec.Process && p.Health.Timeout == 0 && p.Health.StartupTimeout == 0 {
		return nil
	}
	return &Watch{
		Restart:     string(p.Restart.Policy),
		MaxRestarts: p.Restart.MaxRestarts,
		Delay:       p.Restart.Delay,
		MaxDelay:    p.Restart.MaxDelay,
		Window:      p.Restart.Window,
		Timeout:     p.Health.Timeout,
		Startup:     p.Health.StartupTimeout,
		OnError:     string(p.OnError.Then),
		MaxAttempts: p.OnError.MaxAttempts,
	}
}

// instances is the number of a processor's instances. An external processor has none.
func instances(p spec.Processor) int {
	if p.External {
		return 0
	}
	return p.Instances
}

// note lists the settings of an edge that differ from the defaults.
func note(e spec.Edge) string {
	var parts []string
	if e.Durable {
		parts = append(parts, "durable")
	}
	if e.ID.Value != "" {
		parts = append(parts, "once per "+e.ID.Value)
	}
	switch r := e.Route; r.Kind {
	case spec.RouteKey, spec.RouteID, spec.RouteNode:
		parts = append(parts, string(r.Kind)+" "+r.Field.Value)
	case spec.RouteRange:
		parts = append(parts, fmt.Sprintf("range %d–%d", r.Offset, r.Offset+r.Count-1))
	case spec.RouteLocal, spec.RouteBroadcast:
		parts = append(parts, string(r.Kind))
	}
	switch {
	case e.Full != spec.Block && e.Full != "":
		parts = append(parts, fmt.Sprintf("%s %d", e.Full, e.Capacity))
	case e.Capacity != defaultCapacity && e.Capacity != 0 && !e.Durable:
		parts = append(parts, fmt.Sprintf("capacity %d", e.Capacity))
	}
	if l := e.Limit; l != nil {
		parts = append(parts, limitNote(l))
	}
	if e.Timeout > 0 {
		parts = append(parts, "timeout "+shortDuration(e.Timeout.String()))
	}
	if e.Shared {
		parts = append(parts, "shared")
	}
	if e.Delivery == spec.AtMostOnce {
		parts = append(parts, e.Delivery)
	}
	return strings.Join(parts, ", ")
}

// limitNote describes the limit of a durable edge: "at most 1 and 100/s per Customer".
func limitNote(l *spec.Limit) string {
	var limits []string
	if l.Concurrency > 0 {
		limits = append(limits, strconv.Itoa(l.Concurrency))
	}
	if l.Rate.Count > 0 {
		every := shortDuration(l.Rate.Every.String())
		if rest, ok := strings.CutPrefix(every, "1"); ok && (rest == "s" || rest == "m" || rest == "h") {
			every = rest
		}
		limits = append(limits, strconv.Itoa(l.Rate.Count)+"/"+every)
	}
	text := "at most " + strings.Join(limits, " and ")
	if l.Per.Value != "" {
		text += " per " + l.Per.Value
	}
	return text
}

// shortDuration drops the zeros at the end of Duration.String: "1m0s" becomes "1m".
func shortDuration(s string) string {
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// drawable reports whether an edge is part of a picture.
func (g Graph) drawable(e Edge) bool { return g.joins(e) && !e.Aside }

// joins reports whether both ends of an edge are nodes.
func (g Graph) joins(e Edge) bool {
	return e.From >= 0 && e.From < len(g.Nodes) && e.To >= 0 && e.To < len(g.Nodes)
}

// ends returns the two ends of each edge that can be drawn, and the index of the edge.
func (g Graph) ends() (ends [][2]int, index []int) {
	for i, e := range g.Edges {
		if g.drawable(e) {
			ends = append(ends, [2]int{e.From, e.To})
			index = append(index, i)
		}
	}
	return ends, index
}

// watched reports whether the file has settings for failures.
func (g Graph) watched() bool {
	return slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Watch != nil || n.Group != "" || n.Isolated }) ||
		slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.DeadLetter })
}

// counts describes the numbers of processors and edges in words.
func (g Graph) counts() string {
	processors, timers := 0, 0
	for _, n := range g.Nodes {
		if n.Timer {
			timers++
		} else {
			processors++
		}
	}
	s := plural(processors, "processor") + ", " + plural(len(g.Edges), "edge")
	if timers > 0 {
		s += ", " + plural(timers, "timer")
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
