package raft

import (
	"cmp"
	"log/slog"
	"runtime"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/transport"
)

// holdCommits delays messages that contain only a new commit index, and returns the other
// messages. A caller whose proposal was just committed may propose again at once. The
// message with the next entry then contains the commit index too.
func (n *Node) holdCommits(list []Message) []Message {
	others := list[:0]
	for _, m := range list {
		if m.GetType() == pb.MsgApp {
			n.heldCommits = slices.DeleteFunc(n.heldCommits, func(h Message) bool { return h.To == m.To })
			if len(m.Entries) == 0 {
				n.heldCommits = append(n.heldCommits, m)
				continue
			}
		}
		others = append(others, m)
	}
	return others
}

// releaseHeld sends the delayed messages, unless new proposals make them unnecessary. It
// first yields to the callers that were just answered.
func (n *Node) releaseHeld() {
	if len(n.heldCommits) == 0 {
		return
	}
	runtime.Gosched()
	if !n.inbox.hasProposals() {
		n.sendHeld()
	}
}

func (n *Node) sendHeld() {
	n.send(n.heldCommits)
	clear(n.heldCommits)
	n.heldCommits = n.heldCommits[:0]
}

// send passes messages to the transport, all messages for one peer at once.
func (n *Node) send(list []Message) {
	if len(list) == 0 || n.config.Transport == nil {
		return
	}
	wall := n.core.config.Now()
	for _, m := range list {
		if m.GetType() == pb.MsgSnap {
			n.sendSnapshot(m)
			continue
		}
		payload, err := proto.MarshalOptions{}.MarshalAppend(envelope{kindRaft, n.core.groupID, n.core.id}.append(nil), m.Message)
		if err != nil {
			n.logger.Error("raft: cannot encode a message", slog.Any("error", err))
			continue
		}
		if m.GetType() == pb.MsgHeartbeatResp {
			payload = appendLease(payload, n.core.config.LeaseTime)
		}
		if len(n.outgoing[m.To]) == 0 {
			n.order = append(n.order, m.To)
		}
		message := transport.Message{Group: n.config.Group, Payload: appendClock(payload, wall), Class: classOf(m.GetType())}
		n.outgoing[m.To] = append(n.outgoing[m.To], message)
		if o := n.core.members[m.To]; o.Was != "" && message.Class == transport.Urgent {
			n.sendToNewName(o, message)
		}
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

// nameOf returns the name under which a node is reached, or "" if it is unknown. A node
// that has just joined, or was down for a long time, may not know all members or their
// current names. For such a member nameOf returns the name under which its last message
// came.
func (n *Node) nameOf(id uint64) string {
	if name := n.peerNames[id]; name != "" {
		return name
	}
	m := n.core.members[id]
	return cmp.Or(m.Was, m.Name) // the node may still run under its old name
}

// sendToNewName also sends a message to the new name of a renamed member, if this node
// has only received messages under the old name. The member may have been restarted under
// the new name since.
func (n *Node) sendToNewName(o Member, m transport.Message) {
	if n.nameOf(o.ID) != o.Name {
		m.Payload = slices.Clone(m.Payload) // the transport owns the original
		n.config.Transport.Send(o.Name, m)
	}
}

// notePeerName records under which name a node sends messages.
func (n *Node) notePeerName(id uint64, name string) {
	if n.peerNames[id] == name {
		return
	}
	if n.peerNames == nil || len(n.peerNames) >= 4*membersMax { // the map also holds nodes that are not members
		n.peerNames = map[uint64]string{}
	}
	n.peerNames[id] = name
}

// updatePeers passes the addresses of the members to the transport, and removes other
// peers.
func (n *Node) updatePeers(list []Member) {
	wanted := map[string]bool{}
	for _, m := range list {
		if m.ID == n.core.id {
			n.checkOwnName(m.Name)
		} else {
			wanted[m.Name] = true
			n.setPeer(m.Name, n.core.address(m))
			if m.Was != "" && n.peerNames[m.ID] != m.Name {
				wanted[m.Was] = true
				n.setPeer(m.Was, n.core.address(m))
			}
			if number := n.waitingPeers[m.Name]; number != 0 { // the node waits for the message that it is a member
				delete(n.waitingPeers, m.Name)
				n.sendIntroduction(m.Name, number, 0)
			}
		}
	}
	if c := n.pendingChange; c != nil {
		for _, o := range c.changes {
			wanted[o.Name] = wanted[o.Name] || o.adds()
		}
	}
	for name := range n.transportPeers {
		if !wanted[name] {
			delete(n.transportPeers, name)
			n.config.Transport.RemovePeer(name)
		}
	}
}

// classOf returns the class of a message. The class decides which other messages it may
// overtake. Heartbeats and votes must not wait behind a large append, so they may
// overtake it. This is safe, because they do not depend on earlier messages: a heartbeat
// only commits entries that the follower is known to have. Parts of a snapshot are sent
// after all other messages, because a follower that waits for a snapshot gets no appends.
func classOf(t pb.MessageType) transport.Class {
	switch t {
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp:
		return transport.Urgent
	case pb.MsgSnap: // its parts
		return transport.Bulk
	}
	return transport.Ordered
}

// checkOwnName logs a warning if the group has renamed this node.
func (n *Node) checkOwnName(name string) {
	if own := n.config.Core.Name; name != own {
		n.logger.Warn("raft: the group has renamed this node: stop it, rename the folder of its log, and start it under its new name", slog.String("node", own), slog.String("new_name", name))
	}
}

// setPeer sets the address of a node in the transport.
func (n *Node) setPeer(name, address string) {
	if n.config.Transport == nil || address == "" || name == n.config.Core.Name {
		return
	}
	if n.transportPeers == nil {
		n.transportPeers = map[string]bool{}
	}
	n.transportPeers[name] = true
	n.config.Transport.SetPeer(name, address)
}

// addReplyPeer adds a node that is not a known member to the peers of the transport, so
// that it can be answered. The transport has received the address from this node.
func (n *Node) addReplyPeer(name string) {
	if n.transportPeers[name] {
		return
	}
	address, ok := n.config.Transport.PeerAddress(name)
	if ok && len(n.transportPeers) < 2*membersMax {
		n.setPeer(name, address)
		return
	}
	n.rateLimits.log(n, "address "+name, func() {
		n.logger.Warn("raft: a node sends messages to this one, but its address is not known: it gets no answer", slog.String("node", n.config.Core.Name), slog.String("peer", name))
	})
}
