package spec

import (
	"cmp"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// MachineKind says what a processor is that the runtime brings.
type MachineKind string

const (
	FSM  MachineKind = "fsm"  // a state that changes by updates
	Raft MachineKind = "raft" // the consensus alone: rast.md 2.16
)

// Machine is what a processor with a kind has in place of a Go type of the user's.
// The edges between it and its controller stand behind those of the file.
type Machine struct {
	Kind         MachineKind
	State        Text             // of an FSM: the name of a type, as that of a message
	Update       Text             // the same for its updates
	Result       Text             // the type of what an update returns beside an error: the name of a message, or a type; "" for none
	Revert       bool             // the controller adds updates that it may revert
	Route        Route            // of several instances: by what an update chooses one
	Events       []MachineMessage // that edges of the file carry, each once
	Controller   Text             // the name of a processor, "" for none
	ControllerTo int              // its index, -1 for none
	Log          *Log
	Raft         *Replication
	At           finding.Range // of the key kind
	Pointer      string
}

// Replicated reports whether the machine stands on several hosts, or would with
// other peers.
func (m *Machine) Replicated() bool { return m.Raft != nil }

// Sync says when a log is written to the disk.
type Sync string

const (
	SyncAlways   Sync = "always" // before anything is answered
	SyncInterval Sync = "interval"
	SyncNone     Sync = "none" // when the system likes
)

// Log says where a machine keeps what happens to it.
type Log struct {
	Path          Text          // a folder
	Sync          Sync          // SyncAlways by default
	Interval      time.Duration // 10ms by default
	SnapshotEvery int           // entries; 100,000 by default
	At            finding.Range
	Pointer       string
}

// Replication says with whom a machine agrees.
type Replication struct {
	Group           Text // the name of the processor by default
	Peers           []Peer
	ElectionTimeout time.Duration // 1s by default
	Heartbeat       time.Duration // 100ms by default
	Forward         bool          // a proposal to another node goes to the leader; true by default
	ByController    bool          // the controller carries messages between peers, and there is no network here
	Insecure        bool          // without TLS also beyond this machine
	TLS             *TLS
	TrustDomain     Text
	At              finding.Range
	Pointer         string
}

// Peer is a node of a group, and where it is reached.
type Peer struct{ Name, Address Text }

// TLS names the files with which a node proves who it is.
type TLS struct{ Cert, Key, CA Text }

// MachineMessage is a message between a machine and its controller, of a generic or
// plain type of the runtime.
type MachineMessage struct {
	Name      string // the message is called after the processor too: LedgerProposal
	Type      string // of the runtime; "": as Name
	OfUpdate  bool   // the type has the update type as its parameter
	OfResult  bool   // and behind it the type of the results
	ToMachine bool
	Answers   bool // goes to the controller's instance that its field Proposer names; else to the first
	Optional  bool // the controller needs no handler for it: then it is forgotten
}

// TypeName is the name of the runtime's type.
func (m *MachineMessage) TypeName() string { return cmp.Or(m.Type, m.Name) }

// events are what a machine of kind fsm tells any processor that the file has an edge to.
// A receiver has a handler for it.
var events = []MachineMessage{
	{Name: eventApplied, Type: "AppliedUpdate", OfUpdate: true, OfResult: true},
	{Name: eventLeadership},
}

const (
	eventApplied    = "Applied"
	eventLeadership = "Leadership"
)

// event returns what an edge of the file from a machine carries.
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

// Messages are all those between the machine and its controller, requests first.
func (m *Machine) Messages() []MachineMessage {
	if m.Kind == "" { // which has a finding
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
