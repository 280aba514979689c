package plan

import (
	"time"

	"github.com/topogen/topogen/spec"
)

// Packages of the runtime with state machines.
const (
	FSM  = "github.com/topogen/topogen/runtime/fsm"
	Raft = "github.com/topogen/topogen/runtime/raft"
)

// Alias is a name in the generated package for a type of the runtime.
type Alias struct {
	Name      string
	Type      TypeRef
	What      string // "the message Outcome", for findings
	Processor int    // index of its processor
}

// Machine is a processor whose type is a state machine of the runtime. Its methods are
// known, so bind does not search for them.
type Machine struct {
	Kind       string // "fsm", "raft"
	Runtime    TypeRef
	State      string // the name of the state type, as for a message; "" for kind raft
	Update     string // the name of the update type
	Result     string // the name of the result type in a log; "": results are empty
	Revert     bool   // updates can be reverted
	StateType  TypeRef
	UpdateType TypeRef
	ResultType TypeRef
	At         bool     // updates have UpdateAt, which also takes their position in the log
	Errors     []string // error variables in the package of the update that keep their identity in a log
	Keyed      *Edge    // with several instances: an edge with the key that chooses the instance of an update; else nil
	KeyType    string   // type of the key: "string", "int32", "[]byte"
	Controller int      // -1: none
	Log        *Log
	Raft       *Replication
	Answers    []Answer // messages to its controller
	Events     []string // events for any processor: Applied, Leadership
}

// Answer is a message from a state machine to its controller.
type Answer struct {
	Name string  // name of the runtime's type, and of the method that sends it
	Type TypeRef // the type of the runtime
	Send string  // the sender's method; "": it is not sent
}

// Log has the settings for a state machine's log.
type Log struct {
	Path          string
	Sync          string // "always", "interval", "none"
	Interval      time.Duration
	SnapshotEvery int
}

// Replication has the settings for a state machine's raft group.
type Replication struct {
	Group           string
	Peers           []Peer
	ElectionTimeout time.Duration
	Heartbeat       time.Duration
	Forward         bool
	ByController    bool
	Insecure        bool
	TrustDomain     string
	Cert, Key, CA   string
}

// Peer is a node of a group.
type Peer struct{ Name, Address string }

// InstancesType is the name of the type with which callers choose an instance of a state
// machine; "" if there is only one instance.
func (p *Processor) InstancesType() string {
	if p.Machine == nil || p.Instances == 1 {
		return ""
	}
	return p.Ident + "Instances"
}

// Kept reports whether the state machine has a log, for which its values are encoded.
func (m *Machine) Kept() bool { return m.Log != nil || m.Raft != nil }

// Writes reports whether m is a state machine whose state, updates and results need codecs.
func (m *Machine) Writes() bool { return m != nil && m.State != "" && m.Kept() }

// Constructor is the generated function that makes a state machine; "" for other processors.
func (p *Processor) Constructor() string {
	if p.Machine == nil {
		return ""
	}
	return "New" + p.Ident
}

// NoResult is the type of empty results.
var NoResult = TypeRef{Kind: Empty}

// machine adds a state machine of the file, and names its types.
func (b *builder) machine(i int, q *Processor) {
	f := b.topology.Processors[i].Machine
	m := &Machine{
		Kind: string(f.Kind), State: f.State.Value, Update: f.Update.Value, Controller: f.ControllerTo, Log: logOf(f.Log), Raft: replicationOf(f.Raft),
		Revert: f.Revert && f.Raft == nil, ResultType: NoResult,
	}
	switch {
	case f.Kind == spec.Raft:
		m.Runtime = TypeRef{Import: Raft, Name: "Processor"}
	default:
		m.StateType, m.UpdateType = b.message(m.State), b.message(m.Update)
		b.result(m, f, q.Ident)
		if q.Instances > 1 && (f.Route.Kind == spec.RouteKey || f.Route.Kind == spec.RouteID) {
			m.Keyed = &Edge{To: i, Message: m.Update, Type: m.UpdateType}
			b.route(m.Keyed, f.Route)
		}
		m.Runtime = TypeRef{Import: FSM, Name: "Processor"}
		if m.Kept() {
			m.Runtime = TypeRef{Import: Raft, Name: "Machine"}
		}
		m.Runtime.Args = []TypeRef{m.StateType, m.UpdateType, m.ResultType}
	}
	q.Machine, q.Type = m, TypeRef{Name: q.Ident}
	q.Close = &Method{Name: "Close", Error: true}
	b.plan.Aliases = append(b.plan.Aliases, Alias{q.Ident, m.Runtime, "the runtime type", i})
	if m.State != "" && m.Kept() {
		session := TypeRef{Import: Raft, Name: "Session", Args: m.Runtime.Args}
		b.plan.Aliases = append(b.plan.Aliases, Alias{q.Ident + "Session", session, "the session", i})
	}
	known := make(map[string]bool)
	for _, event := range f.Events {
		name := q.Ident + event.Name
		m.Events = append(m.Events, event.Name)
		b.plan.Aliases = append(b.plan.Aliases, Alias{name, m.typeOf(event), "the message " + event.Name, i})
		q.Finish = &Method{Name: "Finish", Error: true}
	}
	for _, message := range f.Messages() {
		t := m.typeOf(message)
		if !message.ToMachine {
			a := Answer{Name: message.Name, Type: t}
			if m.Controller >= 0 {
				a.Send = "Send" + q.Ident + message.Name
			}
			m.Answers = append(m.Answers, a)
		}
		if m.Controller >= 0 && !known[message.Name] {
			known[message.Name] = true
			b.plan.Aliases = append(b.plan.Aliases, Alias{q.Ident + message.Name, t, "the message " + message.Name, i})
		}
	}
	if f.Kind == spec.FSM && !m.Revert { // the runtime's type needs this answer, although without revert no message causes it
		m.Answers = append(m.Answers, Answer{Name: "Upcoming", Type: m.typeOf(spec.MachineMessage{Name: "Upcoming", OfUpdate: true})})
	}
}

// result finds the result type of updates: the type of a message, or a type expression.
func (b *builder) result(m *Machine, f *spec.Machine, ident string) {
	if f.Result.Value == "" {
		return
	}
	m.Result = f.Result.Value
	if t, ok := b.types[m.Result]; ok {
		m.ResultType = t
		return
	}
	m.ResultType = b.parse(m.Result)
	if t := m.ResultType; t.Kind != Named || t.String() != m.Result || t.Import != "" || t.Predeclared() {
		m.Result = ident + "Result" // package spec refuses messages with this name
	}
}

// typeOf is the runtime's type for a message of the state machine.
func (m *Machine) typeOf(message spec.MachineMessage) TypeRef {
	t := TypeRef{Import: FSM, Name: message.TypeName()}
	if m.Kind == string(spec.Raft) {
		t.Import = Raft
	}
	if message.OfUpdate {
		t.Args = append(t.Args, m.UpdateType)
	}
	if message.OfResult {
		t.Args = append(t.Args, m.ResultType)
	}
	return t
}

func logOf(l *spec.Log) *Log {
	if l == nil {
		return nil
	}
	return &Log{Path: l.Path.Value, Sync: string(l.Sync), Interval: l.Interval, SnapshotEvery: l.SnapshotEvery}
}

func replicationOf(r *spec.Replication) *Replication {
	if r == nil {
		return nil
	}
	p := &Replication{
		Group: r.Group.Value, ElectionTimeout: r.ElectionTimeout, Heartbeat: r.Heartbeat, Forward: r.Forward,
		ByController: r.ByController, Insecure: r.Insecure, TrustDomain: r.TrustDomain.Value,
	}
	if t := r.TLS; t != nil {
		p.Cert, p.Key, p.CA = t.Cert.Value, t.Key.Value, t.CA.Value
	}
	for _, peer := range r.Peers {
		p.Peers = append(p.Peers, Peer{peer.Name.Value, peer.Address.Value})
	}
	return p
}

// machineReceives sets the handlers of state machines, which are methods of the runtime's
// types.
func (b *builder) machineReceives() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		if p.Machine == nil {
			continue
		}
		for _, e := range p.Incoming {
			name := "Receive" + b.plan.Edges[e].Message[len(p.Ident):]
			p.Receives = append(p.Receives, Receive{e, Method{Name: name, Context: true, Message: ByPointer, Error: true}})
		}
	}
}

// OfMachine reports whether edge e begins or ends at a state machine.
func (p *Plan) OfMachine(e int) bool {
	edge := &p.Edges[e]
	return p.Processors[edge.To].Machine != nil || edge.From >= 0 && p.Processors[edge.From].Machine != nil
}
