package plan

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Topo is the import path of the runtime package with the names that user code needs.
const Topo = "github.com/topogen/topogen/runtime/topo"

// tick is the type of a timer's message.
var tick = TypeRef{Kind: Named, Import: Topo, Name: "Tick"}

// Package is the Go package of the generated files.
type Package struct {
	Name       string // as in its package clause
	Path       string // import path
	Constraint string // the build constraint that all its files have; "" if none
}

// Outline decides everything that depends only on the topology file, including all names.
// Complete adds the parts that depend on Go: methods, types of keys, constructors. The
// outline is complete even if there are findings, so that later stages can report their
// findings too.
func Outline(t *spec.Topology, pkg Package) (*Plan, []finding.Finding) {
	b := &builder{
		topology: t,
		collided: make(map[finding.Range]bool),
		plan: &Plan{
			Name:       t.Name.Value,
			Source:     filepath.Base(t.File),
			Package:    pkg.Name,
			ImportPath: pkg.Path,
			Constraint: pkg.Constraint,
			Output:     path.Base(t.Output.Value),
			PortsFile:  PortsFile(t.Output.Value),
			Pool:       t.Pool,
		},
	}
	if e := t.Errors; e != nil {
		b.plan.Errors = &Errors{Path: e.Path.Value, Top: e.Top, Keep: e.Keep, DumpEvery: e.DumpEvery, Crash: e.Crash}
	}
	b.messages()
	b.processors()
	b.watches()
	b.edges()
	b.durable()
	b.inputs()
	b.links()
	b.groups()
	b.sends()
	b.cluster()
	b.gaps()
	b.checkNames()
	return b.plan, b.findings
}

// PortsFile is the base name of the ports file for an output: topology_ports_gen.go for
// topology_gen.go.
func PortsFile(output string) string {
	stem := strings.TrimSuffix(path.Base(output), ".go")
	return strings.TrimSuffix(stem, "_gen") + "_ports_gen.go"
}

type builder struct {
	topology *spec.Topology
	plan     *Plan
	types    map[string]TypeRef // by name of the message under messages:
	collided map[finding.Range]bool
	findings []finding.Finding
}

// messages reads the type expressions under messages:.
func (b *builder) messages() {
	b.types = make(map[string]TypeRef, len(b.topology.Messages))
	for _, m := range b.topology.Messages {
		b.types[m.Name.Value] = b.parse(m.Type.Value)
	}
}

// parse reads a type expression of the file, which spec has checked.
func (b *builder) parse(expr string) TypeRef {
	t, err := spec.ParseType(expr)
	if err != nil {
		panic("plan: the topology contains an invalid type: " + err.Error())
	}
	return t.In(b.plan.ImportPath)
}

// message returns the type of the message with this name.
func (b *builder) message(name string) TypeRef {
	if t, ok := b.types[name]; ok {
		return t
	}
	return TypeRef{Kind: Named, Name: name}
}

func (b *builder) processors() {
	locals := make(map[string]bool, len(b.topology.Processors))
	for _, p := range b.topology.Processors {
		q := Processor{
			Name:      p.Name.Value,
			Ident:     p.Ident,
			Local:     unique(locals, localName(p.Ident)),
			Instances: p.Instances,
			Blocking:  p.Blocking,
			External:  p.External,
		}
		switch {
		case p.Machine != nil:
			b.machine(len(b.plan.Processors), &q)
		case p.Type.Value != "":
			q.Type = b.parse(p.Type.Value)
		case !p.External:
			q.Type = TypeRef{Name: p.Ident}
		}
		b.plan.Processors = append(b.plan.Processors, q)
	}
}

// edges adds the declared edges. For each edge with a reply whose sender is a processor of
// the pool, it then adds the edge that carries the reply.
func (b *builder) edges() {
	for _, e := range b.topology.Edges {
		edge := Edge{
			From:      e.From,
			To:        e.To,
			Message:   e.Message.Value,
			Every:     e.Every,
			Timer:     e.Timer.Value,
			Capacity:  e.Capacity,
			Full:      string(e.Full),
			Reply:     e.Reply.Value,
			ReplyEdge: -1,
			ReplyOf:   -1,
			Timeout:   e.Timeout,
			Optional:  e.Optional,
		}
		to := b.plan.Processors[e.To].Ident
		if e.Every > 0 {
			edge.From, edge.Message, edge.Type = -1, e.Tick(), tick
			edge.Ident = "Every" + to + edge.timerIdent()
			if b.route(&edge, e.Route); e.Route.Kind == spec.RouteNone && b.plan.Processors[e.To].Instances > 1 {
				edge.Route = Broadcast // every instance gets a tick
			}
		} else {
			edge.Type = b.message(e.Message.Value)
			edge.Ident = b.plan.Processors[e.From].Ident + to + spec.Exported(e.Message.Value)
			b.route(&edge, e.Route)
			if e.Implied && len(edge.Access) > 0 && b.plan.Processors[e.To].Machine != nil {
				edge.Access = append([]string{proposed}, edge.Access...)
			}
		}
		if edge.Reply != "" {
			edge.ReplyType = b.message(edge.Reply)
		}
		b.plan.Edges = append(b.plan.Edges, edge)
	}
	for i := range b.topology.Edges {
		if ask := &b.plan.Edges[i]; !b.topology.Edges[i].Durable && ask.Reply != "" && ask.From >= 0 && !b.plan.Processors[ask.From].External {
			ask.ReplyEdge = len(b.plan.Edges)
			b.plan.Edges = append(b.plan.Edges, b.replyEdge(i))
		}
	}
	b.deadLetters()
	for i, e := range b.plan.Edges {
		if e.From >= 0 {
			from := &b.plan.Processors[e.From]
			from.Outgoing = append(from.Outgoing, i)
		}
		to := &b.plan.Processors[e.To]
		to.Incoming = append(to.Incoming, i)
	}
	b.machineReceives()
}

// replyEdge is the edge that carries the replies of edge ask. Its name contains the message
// of ask, because two such edges between the same pair may have the same reply.
func (b *builder) replyEdge(ask int) Edge {
	e := &b.plan.Edges[ask]
	return Edge{
		Ident:     b.plan.Processors[e.To].Ident + b.plan.Processors[e.From].Ident + spec.Exported(e.Reply) + "For" + spec.Exported(e.Message),
		From:      e.To,
		To:        e.From,
		Message:   e.Reply,
		Type:      e.ReplyType,
		Route:     ToCaller,
		Capacity:  e.Capacity,
		Full:      string(spec.Block),
		ReplyEdge: -1,
		ReplyOf:   ask,
	}
}

// proposed is the field of a proposal that contains the update. The key is in the update.
const proposed = "Update"

func (b *builder) route(edge *Edge, r spec.Route) {
	switch r.Kind {
	case spec.RouteKey:
		edge.Route, edge.Access = Key, strings.Split(r.Field.Value, ".")
	case spec.RouteID:
		edge.Route, edge.Access = ID, strings.Split(r.Field.Value, ".")
	case spec.RouteLocal:
		edge.Route = Local
	case spec.RouteRange:
		edge.Route, edge.Offset, edge.Count = Range, r.Offset, r.Count
	case spec.RouteBroadcast:
		edge.Route = Broadcast
	case spec.RouteNode:
		edge.Route, edge.Access = ToNode, strings.Split(r.Field.Value, ".")
	}
}

// links joins each pair of processors with queues between them, in order of their first edge.
func (b *builder) links() {
	index := make(map[[2]int]int)
	idents := make(map[string]bool)
	for i, e := range b.plan.Edges {
		if e.From < 0 || e.Durable != nil { // the store keeps the messages of a durable edge
			continue
		}
		pair := [2]int{e.From, e.To}
		at, ok := index[pair]
		if !ok {
			at = len(b.plan.Links)
			index[pair] = at
			ident := unique(idents, b.plan.Processors[e.From].Local+"To"+b.plan.Processors[e.To].Ident)
			b.plan.Links = append(b.plan.Links, Link{From: e.From, To: e.To, Ident: ident})
		}
		link := &b.plan.Links[at]
		link.Edges = append(link.Edges, i)
		link.Sequenced = len(link.Edges) > 1
	}
}
