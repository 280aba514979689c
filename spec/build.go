package spec

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/topogen/topogen/spec/finding"
)

// setters holds a function for each key of one kind of mapping, which sets a field of the
// model. A test compares the keys with the schema.
type setters[T any] map[string]func(*builder, *T, *Value)

var topologyKeys = setters[Topology]{
	"version":    func(*builder, *Topology, *Value) {}, // the schema check covers it
	"name":       func(b *builder, t *Topology, v *Value) { t.Name = v.text() },
	"package":    func(b *builder, t *Topology, v *Value) { t.Package = v.text() },
	"output":     func(b *builder, t *Topology, v *Value) { t.Output = v.text() },
	"messages":   (*builder).messages,
	"processors": (*builder).processors,
	"edges":      (*builder).edges,
	"pool":       func(b *builder, t *Topology, v *Value) { set(b, poolKeys, &t.Pool, v) },
	"errors": func(b *builder, t *Topology, v *Value) {
		t.Errors = &Errors{Top: defaultTop, Keep: defaultKeep, DumpEvery: defaultDumpEvery}
		set(b, errorsKeys, t.Errors, v)
	},
	"health_check_interval": func(b *builder, t *Topology, v *Value) { t.HealthCheckInterval = b.duration(v, timeoutMin) },
	"groups":                (*builder).groups,
	"cluster":               (*builder).cluster,
	"durable":               (*builder).durable,
}

var processorKeys = setters[Processor]{
	"type":      func(b *builder, p *Processor, v *Value) { p.Type = v.text() },
	"new":       func(b *builder, p *Processor, v *Value) { p.New = v.text() },
	"with":      func(b *builder, p *Processor, v *Value) { p.With = v },
	"instances": func(b *builder, p *Processor, v *Value) { p.Instances = v.integer() },
	"blocking":  func(b *builder, p *Processor, v *Value) { p.Blocking = v.boolean() },
	"external":  func(b *builder, p *Processor, v *Value) { p.External = v.boolean() },
	"restart":   func(b *builder, p *Processor, v *Value) { b.restart(&p.Restart, v) },
	"health":    func(b *builder, p *Processor, v *Value) { b.health(&p.Health, v) },
	"isolation": func(b *builder, p *Processor, v *Value) { p.Isolation = Isolation(v.Text) },
	"memory":    func(b *builder, p *Processor, v *Value) { p.Memory = b.bytes(v, processMemory) },
	"on_error":  func(b *builder, p *Processor, v *Value) { b.onError(&p.OnError, v) },

	"placement":  func(b *builder, p *Processor, v *Value) { b.placement(&p.Placement, v) },
	"checkpoint": func(*builder, *Processor, *Value) {}, // reserved: checkLater reports it

	"kind":       ofMachine(func(_ *builder, m *Machine, v *Value) { m.Kind, m.At, m.Pointer = MachineKind(v.Text), v.At, v.Pointer }),
	"state":      ofMachine(func(_ *builder, m *Machine, v *Value) { m.State = v.text() }),
	"update":     ofMachine(func(_ *builder, m *Machine, v *Value) { m.Update = v.text() }),
	"result":     ofMachine(func(_ *builder, m *Machine, v *Value) { m.Result = v.text() }),
	"revert":     ofMachine(func(_ *builder, m *Machine, v *Value) { m.Revert = v.boolean() }),
	"key":        ofMachine(func(b *builder, m *Machine, v *Value) { b.routeByKey(&m.Route, v, "a processor") }),
	"route":      ofMachine(func(b *builder, m *Machine, v *Value) { b.route(&m.Route, v, "a processor") }),
	"controller": ofMachine(func(_ *builder, m *Machine, v *Value) { m.Controller = v.text() }),
	"log":        ofMachine((*builder).log),
	"raft":       ofMachine((*builder).raft),
	"transport":  ofMachine(func(b *builder, m *Machine, v *Value) { b.replication(m).ByController = v.Text == byController }),

	"group":            ofRaft("group"),
	"peers":            ofRaft("peers"),
	"election_timeout": ofRaft("election_timeout"),
	"heartbeat":        ofRaft("heartbeat"),
	"insecure":         ofRaft("insecure"),
	"tls":              ofRaft("tls"),
	"trust_domain":     ofRaft("trust_domain"),
}

var edgeKeys = setters[Edge]{
	"message":  func(b *builder, e *Edge, v *Value) { e.Message = v.text() },
	"key":      func(b *builder, e *Edge, v *Value) { b.routeByKey(&e.Route, v, "an edge") },
	"route":    func(b *builder, e *Edge, v *Value) { b.route(&e.Route, v, "an edge") },
	"capacity": func(b *builder, e *Edge, v *Value) { e.Capacity = v.integer() },
	"full":     func(b *builder, e *Edge, v *Value) { e.Full = Full(v.Text) },
	"reply":    func(b *builder, e *Edge, v *Value) { e.Reply = v.text() },
	"timeout":  func(b *builder, e *Edge, v *Value) { e.Timeout = b.duration(v, 1) },
	"shared":   func(b *builder, e *Edge, v *Value) { e.Shared = v.boolean() },

	"delivery":      func(b *builder, e *Edge, v *Value) { e.Delivery = v.Text },
	"input_timeout": func(b *builder, e *Edge, v *Value) { e.InputTimeout = b.duration(v, timeoutMin) },
	"arm":           func(b *builder, e *Edge, v *Value) { e.ArmAtStart = v.Text == armAtStart },

	"durable": func(_ *builder, e *Edge, v *Value) { e.Durable = v.boolean() },
	"id":      func(_ *builder, e *Edge, v *Value) { e.ID = v.text() },
	"limit":   (*builder).limit,
}

// timerKeys are the keys of edgeKeys that a timer can have.
var timerKeys = setters[Edge]{
	"route":         edgeKeys["route"],
	"input_timeout": edgeKeys["input_timeout"],
	"arm":           edgeKeys["arm"],
}

var routeKeys = setters[Route]{
	"id":    func(b *builder, r *Route, v *Value) { r.Kind, r.Field = RouteID, v.text() },
	"range": func(b *builder, r *Route, v *Value) { r.Kind = RouteRange; set(b, rangeKeys, r, v) },
	"node":  func(b *builder, r *Route, v *Value) { r.Kind, r.Field = RouteNode, v.text() },
}

var rangeKeys = setters[Route]{
	"offset": func(b *builder, r *Route, v *Value) { r.Offset = v.integer() },
	"count":  func(b *builder, r *Route, v *Value) { r.Count = v.integer() },
}

var poolKeys = setters[Pool]{
	"workers":       func(b *builder, p *Pool, v *Value) { p.Workers = v.integer() },
	"batch":         func(b *builder, p *Pool, v *Value) { p.Batch = v.integer() },
	"rebalance":     func(b *builder, p *Pool, v *Value) { p.Rebalance = b.duration(v, 0) },
	"drain_timeout": func(b *builder, p *Pool, v *Value) { p.DrainTimeout, b.drain = b.duration(v, 0), v },
	"message_limit": func(b *builder, p *Pool, v *Value) { p.MessageLimit = b.bytes(v, messageBytes) },
	"cycle_limit":   func(b *builder, p *Pool, v *Value) { p.CycleLimit = v.integer() },
}

var errorsKeys = setters[Errors]{
	"path":       func(b *builder, e *Errors, v *Value) { e.Path = b.errorsPath(v) },
	"top":        func(b *builder, e *Errors, v *Value) { e.Top = v.integer() },
	"keep":       func(b *builder, e *Errors, v *Value) { e.Keep = b.duration(v, 1) },
	"dump_every": func(b *builder, e *Errors, v *Value) { e.DumpEvery = b.duration(v, dumpEveryMin) },
	"crash":      func(b *builder, e *Errors, v *Value) { e.Crash = v.boolean() },
}

// set sets the fields of the target from a mapping, in file order. It skips values that have a
// finding, and does nothing if the value is not a mapping.
func set[T any](b *builder, keys setters[T], target *T, v *Value) {
	for _, f := range v.Fields {
		if setter := keys[f.Key.Value]; setter != nil && !b.found.exact[f.Value.Pointer] {
			setter(b, target, f.Value)
		}
	}
}

// builder makes the model from the tree of Values. Entries with an error stay in the model until
// the end, so that a reference to them is not another error.
type builder struct {
	found     *collector
	similar   *Similar
	topology  *Topology
	types     map[string]string // Go types by message name
	named     map[string]int    // processors by the key as written
	names     []string          // of processors, in order
	receivers []string          // names of processors that are not external
	declared  bool              // the file has the key processors, so an unknown name is an error
	entries   []*Value          // value of each processor
	options   []*Value          // options of each edge; nil for none
	groupOf   map[int]Text      // the name of the group that a processor is in
	section   *Field            // the key cluster; nil for none
	store     *Field            // the key durable; nil for none
	drain     *Value            // of pool.drain_timeout; nil for none

	nodeNames     map[string]bool   // of the cluster
	nodeAddresses map[string]string // the names of the nodes, by address
	nodeList      []string          // their names, sorted, if one is wrong
}

func newBuilder(found *collector) *builder {
	return &builder{
		found:   found,
		similar: new(Similar),
		types:   map[string]string{},
		named:   map[string]int{},
		groupOf: map[int]Text{},

		nodeNames: map[string]bool{}, nodeAddresses: map[string]string{},
		topology: &Topology{
			Output:              Text{Value: defaultOutput},
			HealthCheckInterval: defaultHealthCheckInterval,
			Pool:                Pool{Batch: defaultBatch, Rebalance: defaultRebalance, DrainTimeout: defaultDrainTimeout},
		},
	}
}

func (b *builder) build(root *Value) {
	// Edges and groups refer to processors, so they are set in a second pass.
	for _, refers := range []bool{false, true} {
		for _, f := range root.Fields {
			name := f.Key.Value
			if setter := topologyKeys[name]; setter != nil && (name == "edges" || name == "groups") == refers && !b.found.exact[f.Value.Pointer] {
				setter(b, b.topology, f.Value)
			}
		}
	}
	b.machines()
	b.policies()
	b.section, b.store = root.field("cluster"), root.field("durable")
	b.clusters()
}

func (b *builder) messages(t *Topology, v *Value) {
	for _, f := range v.Fields {
		t.Messages = append(t.Messages, Message{Name: f.Key, Type: f.Value.text()})
		b.types[f.Key.Value] = f.Value.Text
	}
}

func (b *builder) processors(t *Topology, v *Value) {
	b.declared = true
	for i, f := range v.Fields {
		p := Processor{
			Name: f.Key, Ident: Exported(f.Key.Value), Instances: defaultInstances,
			Isolation: Goroutine, OnError: OnError{Then: Stop, DeadLetterTo: -1},
			At: f.Key.At, Pointer: f.Key.Pointer,
		}
		if end := f.Value.At; end.EndLine > p.At.Line || end.EndLine == p.At.Line && end.EndColumn > p.At.EndColumn {
			p.At.EndLine, p.At.EndColumn = end.EndLine, end.EndColumn
		}
		set(b, processorKeys, &p, f.Value)
		b.machine(&p)
		b.checkOptions(&p, f.Value)
		b.entries = append(b.entries, f.Value)
		b.named[f.Key.Value] = i
		b.names = append(b.names, f.Key.Value)
		if !p.External {
			b.receivers = append(b.receivers, f.Key.Value)
		}
		t.Processors = append(t.Processors, p)
	}
	b.deadLetters(t.Processors)
}

func (b *builder) routeByKey(r *Route, v *Value, of string) {
	if r.Kind != RouteNone {
		b.keyAndRoute(v, of)
		return
	}
	*r = Route{Kind: RouteKey, Field: v.text(), At: v.At, Pointer: v.Pointer}
}

// route reads the route of an edge or of a processor of kind fsm.
func (b *builder) route(r *Route, v *Value, of string) {
	if r.Kind != RouteNone {
		b.keyAndRoute(v, of)
		return
	}
	*r = Route{At: v.At, Pointer: v.Pointer}
	switch {
	case v.Kind == String:
		r.Kind = RouteKind(v.Text)
	case len(v.Fields) > 1:
		b.found.addText(finding.KeyAndRoute, v.Fields[1].Key, of+" must have one route, got two", "remove one of them")
	default:
		set(b, routeKeys, r, v)
	}
}

func (b *builder) keyAndRoute(v *Value, of string) {
	b.found.add(finding.KeyAndRoute, v.At, v.Pointer, of+" must have a key or a route, got both", "remove one of them")
}

// errorsPath reads the path of the file of errors. It reports a path that cannot be such a file.
// Other problems appear only when the program runs.
func (b *builder) errorsPath(v *Value) Text {
	const suggestion = `write a name such as "errors.pb"`
	t := v.text()
	file, name := filepath.ToSlash(b.found.file), path.Clean(t.Value)
	switch {
	case strings.ContainsFunc(t.Value, unicode.IsControl):
		b.found.addText(finding.Form, t, "path must not contain control characters, got "+quoted(t.Value), suggestion)
	case strings.HasSuffix(t.Value, "/"), path.Base(name) == ".", path.Base(name) == "..":
		b.found.addText(finding.Form, t, "path must name a file, got the folder "+quoted(t.Value), suggestion)
	case name == file, name == path.Base(file):
		b.found.addText(finding.Form, t, "path must not be the topology file, got "+quoted(t.Value), suggestion)
	}
	return t
}

// duration reads a Go duration that must be at least least.
func (b *builder) duration(v *Value, least time.Duration) time.Duration {
	d, err := time.ParseDuration(v.Text)
	switch {
	case err != nil:
		b.found.add(finding.Form, v.At, v.Pointer, v.key()+" must be a duration, got "+quoted(v.Text), durationHint(v.Text))
	case d < 0 || d < least:
		rule, suggestion := "above 0", "write a duration such as 500ms"
		switch {
		case least == 0:
			rule, suggestion = "0 or more", "write 0, or a duration such as 500ms"
		case least > 1:
			rule, suggestion = "at least "+least.String(), "write a longer duration"
		}
		b.found.add(finding.OutOfRange, v.At, v.Pointer, v.key()+" must be "+rule+", got "+quoted(v.Text), suggestion)
	}
	return d
}

// durationHint suggests how to write a duration. A large number without a unit probably means
// milliseconds.
func durationHint(text string) string {
	if d := withUnit(text); d != "" {
		return "write a unit, such as " + quoted(d)
	}
	return "write numbers with units, such as 500ms, 5s or 1m30s"
}

// withUnit returns a number with the unit that it probably has, or "" if the text is not a number.
func withUnit(text string) string {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= millisecondsMin {
		if _, err := time.ParseDuration(text + "ms"); err == nil {
			return text + "ms"
		}
	}
	if d, err := time.ParseDuration(text + "s"); err == nil && d > 0 {
		return text + "s"
	}
	return ""
}

// key returns the key of the value, which is the last element of its pointer.
func (v *Value) key() string { return lastElement(v.Pointer) }

// lastElement returns what follows the last slash of a JSON pointer: the key of the value
// that the pointer leads to.
func lastElement(pointer string) string { return pointer[strings.LastIndexByte(pointer, '/')+1:] }

func (v *Value) text() Text { return Text{Value: v.Text, At: v.At, Pointer: v.Pointer} }

func (v *Value) boolean() bool { return v.Kind == Bool && strings.EqualFold(v.Text, "true") }

// number returns the number of a value of kind Int or Float.
func (v *Value) number() float64 {
	if i, err := strconv.ParseInt(v.Text, 0, 64); err == nil {
		return float64(i)
	}
	if u, err := strconv.ParseUint(v.Text, 0, 64); err == nil {
		return float64(u)
	}
	f, _ := strconv.ParseFloat(v.Text, 64)
	return f
}

// integer returns the integer of a value. The schema bounds integers so that a float64 is exact,
// and it accepts 4.0 as an integer.
func (v *Value) integer() int { return int(v.number()) }

func quoted(text string) string { return strconv.Quote(clip(text)) }

// unquoted returns a text in which control characters are escaped.
func unquoted(text string) string {
	q := quoted(text)
	return q[1 : len(q)-1]
}

// withoutErrors returns the topology without the entries that have an error.
func (b *builder) withoutErrors() *Topology {
	broken := b.found.broken
	if len(broken) == 0 {
		return b.topology
	}
	kept := *b.topology
	kept.Messages = slices.DeleteFunc(slices.Clone(kept.Messages), func(m Message) bool { return broken[m.Name.Pointer] })
	kept.Groups = slices.DeleteFunc(slices.Clone(kept.Groups), func(g Group) bool { return broken[g.Pointer] })
	kept.Processors, kept.Edges = nil, nil
	indices := map[int]int{-1: -1}
	for i, p := range b.topology.Processors {
		if !broken[p.Pointer] {
			indices[i] = len(kept.Processors)
			kept.Processors = append(kept.Processors, p)
		}
	}
	index := func(of int) int { // -1: left out
		if i, ok := indices[of]; ok {
			return i
		}
		return -1
	}
	for i := range kept.Processors {
		p := &kept.Processors[i]
		if p.OnError.DeadLetterTo = index(p.OnError.DeadLetterTo); p.OnError.DeadLetterTo < 0 {
			p.OnError.DeadLetter = Text{}
		}
		if p.Machine != nil {
			m := *p.Machine
			m.ControllerTo = index(m.ControllerTo)
			p.Machine = &m
		}
	}
	if d := kept.Durable; d != nil && d.RaftTo >= 0 {
		changed := *d
		changed.RaftTo = index(d.RaftTo)
		kept.Durable = &changed
	}
	for i := range kept.Groups {
		g := &kept.Groups[i]
		var members []int
		for _, p := range g.Processors {
			if at := index(p); at >= 0 {
				members = append(members, at)
			}
		}
		g.Processors = members
	}
	for _, e := range b.topology.Edges {
		from, fromKept := indices[e.From]
		to, toKept := indices[e.To]
		if fromKept && toKept && !broken[e.Pointer] {
			e.From, e.To = from, to
			kept.Edges = append(kept.Edges, e)
		}
	}
	kept.place() // the first of several processors may be left out
	return &kept
}
