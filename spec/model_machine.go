package spec

import (
	"cmp"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// MachineKind is the kind of a processor whose type the runtime provides.
type MachineKind string

const (
	FSM  MachineKind = "fsm"  // a state machine: its state changes by updates
	Raft MachineKind = "raft" // only the consensus, for a controller that applies the entries
)

// Machine describes a processor of kind fsm or raft, which has no Go type of the user.
// The edges between it and its controller come after the edges of the file.
type Machine struct {
	Kind         MachineKind
	State        Text             // of an FSM: the name of the state type, which is resolved like the name of a message
	Update       Text             // the name of the update type
	Result       Text             // the type of the result of an update: the name of a message, or a type; "" for none
	Revert       bool             // the controller may revert updates that it added
	Route        Route            // with several instances: how an update selects one
	Events       []MachineMessage // events that edges of the file carry, each once
	Controller   Text             // the name of a processor, "" for none
	ControllerTo int              // its index, -1 for none
	Log          *Log
	Raft         *Replication
	At           finding.Range // of the key kind
	Pointer      string
}

// Replicated reports whether the state machine is replicated by raft, even if it has only one
// peer.
func (m *Machine) Replicated() bool { return m.Raft != nil }

// Sync is the time at which a log is synced to the disk.
type Sync string

const (
	SyncAlways   Sync = "always" // before each answer
	SyncInterval Sync = "interval"
	SyncNone     Sync = "none" // when the operating system writes it
)

// Log describes the log of a processor of kind fsm or raft.
type Log struct {
	Path          Text          // a folder
	Sync          Sync          // SyncAlways by default
	Interval      time.Duration // 10ms by default
	SnapshotEvery int           // entries; 100,000 by default
	At            finding.Range
	Pointer       string
}

// Replication describes a raft group.
type Replication struct {
	Group           Text // the name of the processor by default
	Peers           []Peer
	ElectionTimeout time.Duration // 1s by default
	Heartbeat       time.Duration // 100ms by default
	Forward         bool          // a node that is not the leader forwards a proposal to the leader; true by default
	ByController    bool          // the controller carries the messages between peers, and the runtime opens no connection
	Insecure        bool          // without TLS even between hosts
	TLS             *TLS
	TrustDomain     Text
	At              finding.Range
	Pointer         string
}

// Peer is a node of a group and its address.
type Peer struct{ Name, Address Text }

// TLS names the files with which a node proves its identity.
type TLS struct{ Cert, Key, CA Text }

// MachineMessage is a message between a processor of kind fsm or raft and its controller. Its
// type is a type of the runtime, which may be generic.
type MachineMessage struct {
	Name      string // the full name begins with the processor: LedgerProposal
	Type      string // the name of the type; "": Name
	OfUpdate  bool   // the type has the update type as its parameter
	OfResult  bool   // after it, the type has the result type as a parameter
	ToMachine bool
	Answers   bool // goes to the instance of the controller in its field Proposer; if false, to the first instance
	Optional  bool // the controller needs no handler; without one the message is dropped
}

// TypeName returns the name of the type in the runtime.
func (m *MachineMessage) TypeName() string { return cmp.Or(m.Type, m.Name) }

// events are the messages that an edge of the file may carry from a processor of kind fsm. Its
// receiver needs a handler for them.
var events = []MachineMessage{
	{Name: eventApplied, Type: "AppliedUpdate", OfUpdate: true, OfResult: true},
	{Name: eventLeadership},
}

const (
	eventApplied    = "Applied"
	eventLeadership = "Leadership"
)

// event returns the event that an edge from the processor carries.
func (b *builder) event(p *Processor, message string) (event MachineMessage, ok bool) {
	if p.Machine.Kind != FSM || b.types[message] != "" {
		return event, false
	}
	for _, event := range events {
		if message == p.Ident+event.Name {
			return event, true
		}
	}
	return event, false
}

// Messages returns the messages between the processor and its controller, requests first.
func (m *Machine) Messages() []MachineMessage {
	if m.Kind == "" { // the kind is wrong and has a finding
		return nil
	}
	request := func(name string) MachineMessage { return MachineMessage{Name: name, ToMachine: true} }
	answer := func(name string) MachineMessage {
		return MachineMessage{Name: name, Answers: true, Optional: true}
	}
	if m.Kind == FSM {
		of := func(m MachineMessage) MachineMessage { m.OfUpdate = true; return m }
		outcome := of(answer("Outcome"))
		outcome.OfResult = true
		if !m.Revert || m.Replicated() {
			return []MachineMessage{of(request("Proposal")), outcome}
		}
		return []MachineMessage{
			of(request("Proposal")), of(request("Updates")), request("Commit"), request("GetUpcoming"), request("Revert"),
			outcome, of(answer("Upcoming")),
		}
	}
	var list []MachineMessage
	for _, name := range []string{"MasterCommit", "GetMasterInfo", "GetNextEntry", "MarkApplied", "ChangeMembers", "TransferLeader", "Read"} {
		list = append(list, request(name))
	}
	for _, name := range []string{"MasterInfo", "NextEntry", "Answer"} {
		list = append(list, answer(name))
	}
	if m.Raft.ByController {
		for _, name := range []string{"RequestVote", "ResponseVote", "Masterbeat", "FollowerResponse", "InstallSnapshot"} {
			list = append(list, request(name), MachineMessage{Name: name})
		}
	}
	return list
}
