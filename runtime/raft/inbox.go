package raft

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
)

const (
	inboxMessagesMax = 8192      // from peers, not handled yet; further ones are dropped, and the peers repeat them
	inboxBytesMax    = 256 << 20 // bytes of these messages; one message may exceed it
	readsMax         = 1 << 14   // reads in progress; further reads wait until there is room, as proposals do
)

// inbox holds the input for the node's loop.
type inbox struct {
	mu        sync.Mutex
	messages  []peerMessage
	bytes     int
	from      map[string]inboxShare // of the senders of messages
	proposals []proposal
	reads     []pendingRead
	calls     []func(*Core)
	closed    bool
	err       error // why the inbox is closed
}

// inboxShare is what one sender has in the inbox.
type inboxShare struct{ messages, bytes int }

// add adds a message, or drops it if its sender has as much in the inbox as there is room left. So
// one sender alone gets half of the room, and there is always some for another one. The lock must
// be held.
func (b *inbox) add(m *peerMessage) {
	own := b.from[m.name]
	if b.closed || own.messages >= inboxMessagesMax-len(b.messages) || own.bytes > inboxBytesMax-b.bytes {
		return
	}
	if b.from == nil {
		b.from = map[string]inboxShare{}
	}
	b.from[m.name] = inboxShare{own.messages + 1, own.bytes + m.bytes}
	b.messages = append(b.messages, *m)
	b.bytes += m.bytes
}

// peerMessage is a message of another node. Depending on its kind, it holds a message of
// the engine, an introduction, a notice, a part or a receipt. A message of the engine from
// another group is not parsed.
type peerMessage struct {
	envelope
	name string // of the node, according to the transport
	*pb.Message
	unparsed     []byte
	wall         int64         // the sender's clock; 0: unknown
	lease        time.Duration // the sender's lease time, or unknownLease
	introduction *introduction
	notice       notice
	part         *part // of a snapshot; Message is the message in the part
	receipt      *receipt
	broken       error // why the message could not be parsed
	bytes        int   // approximate size in memory
}

type pendingRead struct {
	w     Waiter
	lease bool // the read may rely on clocks
}

type proposal struct {
	kind Kind
	data []byte
	w    proposalWaiter
}

// proposalWaiter is a Waiter that receives the number of its proposal, for Abandon.
type proposalWaiter interface {
	Waiter
	proposed(number uint64)
}

// receive takes messages of a node. It runs on goroutines of the transport.
func (n *Node) receive(from string, payloads [][]byte) {
	own := n.groupID.Load()
	reported := false
	for _, b := range payloads {
		m, err := openPeerMessage(from, own, b)
		if err != nil {
			if reported { // report one broken message of a batch only
				continue
			}
			m, reported = peerMessage{name: from, broken: err}, true
		}
		n.inbox.mu.Lock()
		n.inbox.add(&m)
		n.inbox.mu.Unlock()
	}
	n.wakeUp()
}

// openPeerMessage parses a message. It does not parse a message of the engine from a
// group other than own.
func openPeerMessage(from string, own uint64, b []byte) (m peerMessage, err error) {
	m.name, m.bytes = from, len(b)
	var payload []byte
	if m.envelope, payload, err = openEnvelope(b); err != nil {
		return m, err
	}
	switch m.kind {
	case kindIntroduction:
		m.introduction = new(introduction)
		*m.introduction, err = readIntroduction(payload)
	case kindNotice:
		m.notice, err = readNotice(payload)
	case kindReceipt:
		m.receipt = new(receipt)
		*m.receipt, err = readReceipt(payload)
	case kindRaft, kindPart:
		m.unparsed = payload
		err = m.parse(own)
	}
	return m, err
}

// parse parses a message of the engine, if it is from the node's own group.
func (m *peerMessage) parse(own uint64) error {
	if m.unparsed == nil || m.groupID != own || own == 0 {
		return nil
	}
	b := m.unparsed
	m.unparsed = nil
	if m.kind == kindPart {
		p, err := readPart(b)
		m.part, m.Message = &p, p.message
		m.bytes += parsedEntry * len(m.GetEntries())
		return err
	}
	var err error
	if m.Message, err = parseEngine(b, false); err != nil {
		return err
	}
	m.bytes += parsedEntry * len(m.GetEntries())
	m.wall, m.lease = takeTimes(m.Message)
	if m.GetType() == pb.MsgSnap {
		return fmt.Errorf("%w: a snapshot must be sent in parts", ErrMessage)
	}
	return nil
}

func (n *Node) wakeUp() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// put calls add with the inbox, unless the node has ended.
func (n *Node) put(add func(*inbox)) error {
	n.inbox.mu.Lock()
	if n.inbox.closed {
		defer n.inbox.mu.Unlock()
		return n.inbox.err
	}
	add(&n.inbox)
	n.inbox.mu.Unlock()
	n.wakeUp()
	return nil
}

// putProposal is like put for a proposal, but does not allocate.
func (n *Node) putProposal(p proposal) error {
	n.inbox.mu.Lock()
	if n.inbox.closed {
		defer n.inbox.mu.Unlock()
		return n.inbox.err
	}
	n.inbox.proposals = append(n.inbox.proposals, p)
	first := len(n.inbox.proposals) == 1
	n.inbox.mu.Unlock()
	if first {
		n.wakeUp()
	}
	return nil
}

// swap moves the content of the inbox to box, and reuses the slices of box. If the
// parameter proposals is false, the proposals stay in the inbox.
func (b *inbox) swap(box *inbox, proposals bool) {
	clear(box.messages)
	clear(box.proposals)
	clear(box.reads)
	clear(box.calls)
	box.proposals = box.proposals[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages, box.messages = box.messages[:0], b.messages
	if proposals {
		b.proposals, box.proposals = box.proposals, b.proposals
	}
	b.reads, box.reads = box.reads[:0], b.reads
	b.calls, box.calls = box.calls[:0], b.calls
	b.bytes = 0
	clear(b.from)
}

// hasProposals reports whether proposals wait in the inbox.
func (b *inbox) hasProposals() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.proposals) > 0
}

// take passes the content of an inbox to the core.
func (n *Node) take(box *inbox) {
	for i := range box.messages {
		n.takeMessage(&box.messages[i])
	}
	if len(box.proposals) > 0 {
		n.concurrentProposals = n.core.pendingCount()+len(box.proposals) > 1
	}
	for _, p := range box.proposals {
		number, err := n.core.Propose(p.kind, p.data, p.w)
		if err != nil {
			p.w.Done(fsm.Applied{Err: err})
			continue
		}
		p.w.proposed(number)
	}
	for _, r := range box.reads {
		read := n.core.Read
		if r.lease {
			read = n.core.ReadLease
		}
		if err := read(r.w); err != nil {
			r.w.Done(fsm.Applied{Err: err})
		}
	}
	for _, call := range box.calls {
		call(n.core)
	}
}

// takeMessage handles a message of a node.
func (n *Node) takeMessage(m *peerMessage) {
	if m.broken != nil {
		n.rateLimits.log(n, "broken "+m.name, func() {
			n.logger.Warn("raft: a peer sent bytes that are not a message", slog.String("peer", m.name), slog.Any("error", m.broken))
		})
		return
	}
	n.addReplyPeer(m.name)
	err := m.parse(n.core.groupID) // the node may have become a member after the message came
	switch {
	case err != nil:
		return // an invalid message of a peer does not end the node
	case m.introduction != nil:
		err = n.takeIntroduction(m)
	case m.kind == kindNotice:
		n.takeNotice(m)
	case m.receipt != nil:
		if m.groupID == n.core.groupID {
			n.snapshotter.put(job{id: m.id, name: m.name, receipt: m.receipt})
		}
	case m.Message == nil:
		n.refuseOtherGroup(m)
	case m.part != nil:
		n.receivePart(m)
	default:
		n.step(m)
	}
	if err != nil && n.core.err == nil {
		n.core.err = err
	}
}

// do calls a function with the core, on the goroutine of the node's loop, and waits for
// it.
func (n *Node) do(ctx context.Context, call func(*Core)) error {
	called := make(chan struct{})
	if err := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(c *Core) { call(c); close(called) })
	}); err != nil {
		return err
	}
	select {
	case <-called:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
