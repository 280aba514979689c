// Package machineraft has processors of kind raft. Their controllers apply committed entries.
package machineraft

import (
	"errors"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// Command is a request of a client.
type Command struct {
	Key  string
	Data []byte
}

const Commands = 50

// Clients sends commands, and then waits until all of them are done.
type Clients struct {
	sent int
	Done func() bool
}

func (c *Clients) Ping(out *ClientsSender) error {
	if c.sent == Commands {
		if c.Done() {
			return topo.Done
		}
		return topo.Idle
	}
	c.sent++
	if c.sent == 1 {
		if err := out.SendCarriedResponseVote(CarriedResponseVote{From: "n2", To: "n1"}); err != nil {
			return err
		}
	}
	return out.SendCommand(Command{Key: string(rune('a' + c.sent%5)), Data: []byte{byte(c.sent)}})
}

// Replica commits its commands. Its first instance applies the commands of all instances.
type Replica struct {
	Index   int
	Asked   map[uint64][]byte // by request
	Wrong   func(format string, args ...any)
	Applied func(data []byte)
	state   []byte
	last    uint64
	begun   bool
}

func (r *Replica) ReceiveCommand(m *Command, out *ReplicaSender) {
	request := uint64(len(r.Asked))
	r.Asked[request] = m.Data
	out.SendConsensusMasterCommit(ConsensusMasterCommit{Request: request, Data: m.Data})
}

// ReceiveTick starts to ask for entries.
func (r *Replica) ReceiveTick(_ topo.Tick, out *ReplicaSender) {
	if r.Index == 0 && !r.begun {
		r.begun = true
		out.SendConsensusGetNextEntry(ConsensusGetNextEntry{Proposer: 9}) // the sender overwrites Proposer
	}
}

func (r *Replica) ReceiveConsensusAnswer(m *ConsensusAnswer, out *ReplicaSender) {
	switch {
	case m.Proposer != r.Index:
		r.Wrong("instance %d gets the answer of %d", r.Index, m.Proposer)
	case errors.Is(m.Err, fsm.ErrNotLeader): // there is no leader yet
		out.SendConsensusMasterCommit(ConsensusMasterCommit{Request: m.Request, Data: r.Asked[m.Request]})
	case m.Err != nil:
		r.Wrong("request %d: %v", m.Request, m.Err)
	}
}

func (r *Replica) ReceiveConsensusNextEntry(m *ConsensusNextEntry, out *ReplicaSender) {
	if m.Proposer != r.Index || m.TransactionID != r.last+1 {
		r.Wrong("instance %d gets entry %d for %d behind %d", r.Index, m.TransactionID, m.Proposer, r.last)
	}
	r.last = m.TransactionID
	r.state = append(r.state, m.Data...)
	r.Applied(m.Data)
	out.SendConsensusMarkApplied(ConsensusMarkApplied{TransactionID: r.last, State: r.state})
	out.SendConsensusGetNextEntry(ConsensusGetNextEntry{})
}

// Carrier delivers no messages, so its node reaches no other node.
type Carrier struct{ Asked func() }

func (*Carrier) ReceiveCarriedRequestVote(*CarriedRequestVote) {}

func (*Carrier) ReceiveCarriedResponseVote(m CarriedResponseVote, out *CarrierSender) {
	out.SendCarriedResponseVote(m)
}

func (*Carrier) ReceiveCarriedMasterbeat(*CarriedMasterbeat) {}

// ReceiveCarriedFollowerResponse gets the requests of n1, which starts no group before n2 has
// answered.
func (c *Carrier) ReceiveCarriedFollowerResponse(m *CarriedFollowerResponse) {
	if m.From == "n1" && m.To == "n2" && m.Kind == raft.ResponseIntroduction {
		c.Asked()
	}
}

func (*Carrier) ReceiveCarriedInstallSnapshot(*CarriedInstallSnapshot) {}
