package raft

import (
	"github.com/topogen/topogen/runtime/fsm"
)

const (
	batchBytesMax    = 256 << 10 // of one entry; no command is added to a larger entry, so an entry and an update of 256 KiB fit in one frame
	batchCommandsMax = 1 << 16   // in one entry, so that applying an entry does not take too long
)

// Waiter receives the result of a request, once. Done runs on the goroutine that drives
// the Core, or on the goroutine of the state machine. It must not wait, and must not call
// methods of the Core. Waiters are compared with ==.
type Waiter interface {
	Done(a fsm.Applied)
}

// Kind is the effect of a command on the state machine.
type Kind uint8

const (
	Update Kind = iota // one update, which is added, applied and committed
	Add                // one update, which is applied but not committed
	Commit             // commits all updates that were added
	Revert             // undoes the updates that were added and not committed
)

// command is a proposed command that is not answered yet.
type command struct {
	kind      Kind
	done      bool // answered, or abandoned
	sent      bool
	uncertain bool  // an earlier copy may be in the log, and this node does not know it
	tick      int64 // of the last proposal
	data      []byte
	waiter    Waiter
}

// pending are the commands of this node's own session. Their sequence numbers are
// consecutive, so they are kept in a ring. Commands that the log may have lost are
// proposed again, and the session makes sure that each command is applied only once.
type pending struct {
	ring   []command
	floor  uint64 // the oldest sequence without an answer
	next   uint64 // the sequence of the next command
	unsent uint64 // the oldest sequence that must be proposed

	client  uint64                    // number of the session; 0: none yet
	opening bool                      // a command that opens a session was proposed
	node    uint64                    // owner of the session
	types   string                    // types that the node's program knows, see fsm.Batch.Describe
	nonce   uint64                    // of the command that opens the session
	refused error                     // why the group refuses a session to the node
	check   func(update []byte) error // whether the log may have an update; nil: the log may have all

	sentTerm  uint64 // where and when the newest command was proposed
	sentTick  int64
	waitTicks int64 // ticks before all commands are proposed again
}

// newPending returns a pending for at most n commands; n is a power of two.
func newPending(n int, node, nonce uint64) pending {
	return pending{ring: make([]command, n), floor: 1, next: 1, unsent: 1, node: node, nonce: nonce}
}

func (p *pending) at(sequence uint64) *command { return &p.ring[sequence%uint64(len(p.ring))] }

// full reports whether there is no room for another command.
func (p *pending) full() bool { return p.next-p.floor >= uint64(len(p.ring)) }

func (p *pending) len() int { return int(p.next - p.floor) }

// add takes a command and returns its sequence number.
func (p *pending) add(kind Kind, data []byte, w Waiter) uint64 {
	*p.at(p.next) = command{kind: kind, data: data, waiter: w}
	p.next++
	return p.next - 1
}

// abandon removes the waiter w. It reports whether w was there, and whether the command
// may have been proposed, so that its outcome is unknown.
func (p *pending) abandon(sequence uint64, w Waiter) (found, sent bool) {
	if !p.isOpen(sequence) || p.at(sequence).waiter != w {
		return false, true
	}
	c := p.at(sequence)
	sent = c.sent || c.uncertain
	c.finish()
	p.advanceFloor()
	return true, sent
}

func (c *command) finish() { c.done, c.data, c.waiter = true, nil, nil }

// advanceFloor moves the floor past the commands that are done.
func (p *pending) advanceFloor() {
	for p.floor < p.next && p.at(p.floor).done {
		p.floor++
	}
	p.unsent = max(p.unsent, p.floor)
}

// isOpen reports whether a caller waits for a command of the session.
func (p *pending) isOpen(sequence uint64) bool {
	return sequence >= p.floor && sequence < p.next && !p.at(sequence).done
}

// answer passes on the result of a command of the session.
func (p *pending) answer(sequence uint64, a fsm.Applied) {
	if !p.isOpen(sequence) {
		return
	}
	c := p.at(sequence)
	w := c.waiter
	first := !c.uncertain // an uncertain command was proposed again: its answer may have come late, and the same wait may be too short again
	c.finish()
	p.advanceFloor()
	if first || p.floor == p.next {
		p.waitTicks = 0
	}
	w.Done(a)
}

// newNonce changes the nonce, so that the next command that opens a session opens a
// different one.
func (p *pending) newNonce() { p.nonce = p.nonce*6364136223846793005 + 1442695040888963407 }

// reopenSession starts a new session after the old one was evicted, or was used by a
// client although no client may use it. If a command was proposed once and not answered,
// its entry can only be after the end of the old session, where it is not applied. So the
// command is proposed again in the new session. If a command was proposed twice, it may
// have been applied the first time, and its outcome cannot be found any more.
func (p *pending) reopenSession(why error) {
	p.client, p.opening = 0, false
	p.newNonce()
	for s := p.floor; s < p.next; s++ {
		switch c := p.at(s); {
		case c.done:
		case c.uncertain:
			w := c.waiter
			c.finish()
			w.Done(fsm.Applied{Err: why})
		default:
			c.sent = false
		}
	}
	p.advanceFloor()
	p.unsent = p.floor
}

// fail ends the commands that were not proposed with the error unsent, and the others
// with the error sent. Commands whose error is nil are kept.
func (p *pending) fail(unsent, sent error) {
	for s := p.floor; s < p.next; s++ {
		c := p.at(s)
		err := unsent
		if c.sent || c.uncertain {
			err = sent
		}
		if c.done || err == nil {
			continue
		}
		w := c.waiter
		c.finish()
		w.Done(fsm.Applied{Err: err})
	}
	p.advanceFloor()
}

// repropose marks all unanswered commands to be proposed again.
func (p *pending) repropose() {
	p.opening = false
	for s := p.floor; s < p.unsent; s++ {
		c := p.at(s)
		c.uncertain = c.sent
	}
	p.unsent = p.floor
}

// batch fills b with commands that must be proposed, and returns the sequence after the
// last one, or 0 if there is nothing to propose.
func (p *pending) batch(b *fsm.Batch, now int64) (upTo uint64) {
	b.Reset(now)
	if p.client == 0 {
		if p.opening || p.floor == p.next {
			return 0
		}
		b.Describe(p.node, p.types, p.nonce)
		b.OpenNode(p.node, p.nonce)
		return p.unsent
	}
	s := p.unsent
	for ; s < p.next && b.Len() < batchCommandsMax && len(b.Bytes()) < batchBytesMax; s++ {
		c := p.at(s)
		if c.done {
			continue
		}
		if p.rejectDisallowed(c) {
			continue
		}
		switch c.kind {
		case Update:
			b.Update(p.client, s, p.floor, c.data)
		case Add:
			b.Add(p.client, s, p.floor, c.data)
		case Commit:
			b.Commit(p.client, s, p.floor)
		case Revert:
			b.Revert(p.client, s, p.floor)
		}
	}
	if b.Len() == 0 {
		p.unsent = s
		p.advanceFloor()
		return 0
	}
	return s
}

// rejectDisallowed ends a command if the log may not have its update.
func (p *pending) rejectDisallowed(c *command) bool {
	if p.check == nil || c.data == nil {
		return false
	}
	err := p.check(c.data)
	if err == nil {
		return false
	}
	w := c.waiter
	c.finish()
	w.Done(fsm.Applied{Err: err})
	return true
}

// markProposed records that the commands of the last batch were proposed.
func (p *pending) markProposed(upTo, term uint64, tick int64) {
	if p.client == 0 {
		p.opening = true
	}
	for s := p.unsent; s < upTo; s++ {
		c := p.at(s)
		c.sent, c.tick = true, tick
	}
	p.unsent, p.sentTerm, p.sentTick = upTo, term, tick
}

// oldestUnanswered reports whether a proposed command is not answered, and the tick at
// which the oldest such command was last proposed. A lost command is found although newer
// commands are answered, because the oldest command counts.
func (p *pending) oldestUnanswered() (since int64, waits bool) {
	if p.floor < p.unsent {
		return p.at(p.floor).tick, true
	}
	return p.sentTick, p.opening
}
