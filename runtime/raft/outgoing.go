package raft

import (
	"log/slog"
	"runtime"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/transport"
)

// hold keeps back what tells a follower of a commit and nothing else: who is
// answered by that commit may ask for the next at once, and what brings a follower
// the next tells it of the commit, too. It returns the others.
func (n *Node) hold(list []Message) []Message {
	others := list[:0]
	for _, m := range list {
		if m.GetType() == pb.MsgApp {
			n.held = slices.DeleteFunc(n.held, func(h Message) bool { return h.To == m.To })
			if len(m.Entries) == 0 {
				n.held = append(n.held, m)
				continue
			}
		}
		others = append(others, m)
	}
	return others
}

// release sends what is held, unless there are proposals that may stand in for it.
// Those who were just answered get to run before.
func (n *Node) release() {
	if len(n.held) == 0 {
		return
	}
	runtime.Gosched()
	if !n.inbox.proposes() {
		n.sendHeld()
	}
}

func (n *Node) sendHeld() {
	n.send(n.held)
	clear(n.held)
	n.held = n.held[:0]
}

// send hands messages to the transport, all for one peer at once.
func (n *Node) send(list []Message) {
	if len(list) == 0 || n.config.Transport == nil {
		return
	}
	for _, m := range list {
		payload, err := proto.Marshal(m.Message)
		if err != nil {
			n.logger.Error("raft: a message cannot be written", slog.Any("error", err))
			continue
		}
		if len(n.outgoing[m.To]) == 0 {
			n.order = append(n.order, m.To)
		}
		n.outgoing[m.To] = append(n.outgoing[m.To], transport.Message{Group: n.config.Group, Payload: payload, Class: classOf(m.GetType())})
	}
	for _, to := range n.order {
		if name := n.nameOf(to); name != "" {
			n.config.Transport.Send(name, n.outgoing[to]...)
		}
		clear(n.outgoing[to])
		n.outgoing[to] = n.outgoing[to][:0]
	}
	n.order = n.order[:0]
}

// nameOf is the name of a member, or of a node that has sent something: who has just
// joined, or was away for long, does not know all members. "": it is not known.
func (n *Node) nameOf(id uint64) string {
	if m, ok := n.core.members[id]; ok {
		return m.Name
	}
	return n.strangers[id]
}

// meet remembers the name of a node that is no member as far as this one knows.
func (n *Node) meet(id uint64, name string) {
	if _, known := n.core.members[id]; known || n.strangers[id] == name {
		return
	}
	if n.strangers == nil || len(n.strangers) == membersMax {
		n.strangers = map[uint64]string{}
	}
	n.strangers[id] = name
}

// learnPeers tells the transport where the members are: as this node was told when
// it started, since addresses change, else as whoever added them said.
func (n *Node) learnPeers(list []Member) {
	t := n.config.Transport
	if t == nil {
		return
	}
	for _, m := range list {
		switch {
		case m.ID == n.core.id:
		case n.core.gone(m.ID):
			t.RemovePeer(m.Name)
		case n.config.Core.Peers[m.Name] != "":
			t.SetPeer(m.Name, n.config.Core.Peers[m.Name])
		case m.Address != "":
			t.SetPeer(m.Name, m.Address)
		}
	}
}

// classOf is what a message may overtake. A heartbeat or a vote is useless behind
// an append of many bytes, and neither relies on what was sent before it: a
// heartbeat commits no more than the follower is known to have. A snapshot is
// behind all others, since nothing is appended at a follower that waits for one.
func classOf(t pb.MessageType) transport.Class {
	switch t {
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp:
		return transport.Urgent
	case pb.MsgSnap:
		return transport.Bulk
	}
	return transport.Ordered
}
