package spec

import "slices"

var logKeys = setters[Log]{
	"path":           func(b *builder, l *Log, v *Value) { l.Path = b.folder(v, "./log") },
	"sync":           func(b *builder, l *Log, v *Value) { l.Sync = Sync(v.Text) },
	"interval":       func(b *builder, l *Log, v *Value) { l.Interval = b.duration(v, syncIntervalMin) },
	"snapshot_every": func(b *builder, l *Log, v *Value) { l.SnapshotEvery = v.integer() },
}

var raftKeys = setters[Replication]{
	"group":            func(b *builder, r *Replication, v *Value) { r.Group = v.text() },
	"peers":            (*builder).peers,
	"election_timeout": func(b *builder, r *Replication, v *Value) { r.ElectionTimeout = b.duration(v, 1) },
	"heartbeat":        func(b *builder, r *Replication, v *Value) { r.Heartbeat = b.duration(v, heartbeatMin) },
	"forward":          func(b *builder, r *Replication, v *Value) { r.Forward = v.boolean() },
	"insecure":         func(b *builder, r *Replication, v *Value) { r.Insecure = v.boolean() },
	"tls":              func(b *builder, r *Replication, v *Value) { r.TLS = new(TLS); set(b, tlsKeys, r.TLS, v) },
	"trust_domain":     func(b *builder, r *Replication, v *Value) { r.TrustDomain = v.text() },
}

var tlsKeys = setters[TLS]{
	"cert": func(b *builder, t *TLS, v *Value) { t.Cert = v.text() },
	"key":  func(b *builder, t *TLS, v *Value) { t.Key = v.text() },
	"ca":   func(b *builder, t *TLS, v *Value) { t.CA = v.text() },
}

// ofMachine returns a setter for a key of a Machine. The kind may come later in the file, so
// checkKind checks afterwards that the key goes with the kind.
func ofMachine(set func(b *builder, m *Machine, v *Value)) func(*builder, *Processor, *Value) {
	return func(b *builder, p *Processor, v *Value) {
		if p.Machine == nil {
			p.Machine = &Machine{ControllerTo: -1}
		}
		set(b, p.Machine, v)
	}
}

// ofRaft returns a setter for a key that a processor of kind raft has directly, and a processor
// of kind fsm has under raft.
func ofRaft(name string) func(*builder, *Processor, *Value) {
	return ofMachine(func(b *builder, m *Machine, v *Value) {
		raftKeys[name](b, b.replication(m), v)
	})
}

func (b *builder) replication(m *Machine) *Replication {
	if m.Raft == nil {
		m.Raft = &Replication{ElectionTimeout: defaultElectionTimeout, Heartbeat: defaultHeartbeat, Forward: true}
	}
	return m.Raft
}

const byController = "controller"

func (b *builder) peers(r *Replication, v *Value) {
	for _, f := range v.Fields {
		if !b.found.exact[f.Value.Pointer] {
			r.Peers = append(r.Peers, Peer{Name: f.Key, Address: f.Value.text()})
		}
	}
}

func (b *builder) log(m *Machine, v *Value) {
	m.Log = &Log{Sync: SyncAlways, Interval: defaultSyncInterval, SnapshotEvery: defaultSnapshotEvery, At: v.At, Pointer: v.Pointer}
	set(b, logKeys, m.Log, v)
}

func (b *builder) raft(m *Machine, v *Value) {
	r := b.replication(m)
	r.At, r.Pointer = v.At, v.Pointer
	set(b, raftKeys, r, v)
}

// machine fills in the defaults of a processor of kind fsm or raft.
func (b *builder) machine(p *Processor) {
	m := p.Machine
	if m == nil || m.Kind == "" {
		return
	}
	p.External = false // the key external has a finding
	if m.Kind == Raft {
		r := b.replication(m)
		if r.Pointer == "" {
			r.At, r.Pointer = p.At, p.Pointer
		}
	}
	if m.Raft != nil && m.Raft.Group.Value == "" {
		m.Raft.Group = p.Name
	}
	if m.Log != nil || m.Raft != nil {
		p.Blocking = true // its instances wait for the disk
	}
}

// machines finds the events that edges carry from processors of kind fsm. It then resolves the
// controllers and appends the edges between each of them and its processor.
func (b *builder) machines() {
	t := b.topology
	for i := range t.Edges {
		e := &t.Edges[i]
		if !b.isMachine(e.From) {
			continue
		}
		m := t.Processors[e.From].Machine
		if event, ok := b.event(&t.Processors[e.From], e.Message.Value); ok && !slices.Contains(m.Events, event) {
			m.Events = append(m.Events, event)
		}
	}
	for i := range t.Processors {
		m := t.Processors[i].Machine
		if m == nil || m.Controller.Pointer == "" || m.Kind == "" || b.found.exact[m.Controller.Pointer] {
			continue
		}
		m.ControllerTo = b.reference(m.Controller, m.Controller.Pointer, b.receivers, "")
		if m.ControllerTo < 0 {
			m.ControllerTo = -1
		} else if b.checkController(i, m) {
			b.addControllerEdges(i, m)
		}
	}
}

// addControllerEdges appends the edges between a processor of kind fsm or raft and its
// controller.
func (b *builder) addControllerEdges(machine int, m *Machine) {
	t := b.topology
	p, c := &t.Processors[machine], &t.Processors[m.ControllerTo]
	at := func(name string) Text { return Text{Value: name, At: m.Controller.At, Pointer: m.Controller.Pointer} }
	for _, message := range m.Messages() {
		e := Edge{
			From: machine, To: m.ControllerTo, FromText: at(p.Name.Value), ToText: at(c.Name.Value),
			Message: at(p.Ident + message.Name), Capacity: defaultCapacity, Full: Block,
			At: m.Controller.At, Pointer: m.Controller.Pointer, Implied: true, Optional: message.Optional, Shared: true,
		}
		switch {
		case message.ToMachine:
			e.From, e.To, e.FromText, e.ToText = e.To, e.From, e.ToText, e.FromText
			if p.Instances > 1 {
				e.Route = m.Route
			}
		case c.Instances == 1:
		case message.Answers:
			e.Route = Route{Kind: RouteID, Field: at(Proposer), At: m.Controller.At, Pointer: m.Controller.Pointer}
		default:
			e.Route = Route{Kind: RouteRange, Count: 1, At: m.Controller.At, Pointer: m.Controller.Pointer}
		}
		t.Edges = append(t.Edges, e)
		b.options = append(b.options, nil)
	}
}

// Proposer is the field of requests and answers that holds the index of the controller's
// instance.
const Proposer = "Proposer"
