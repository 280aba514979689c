package raft

import (
	"github.com/topogen/topogen/runtime/fsm"
)

const (
	batchBytesMax    = 256 << 10 // of one entry, beyond which no command is added: with an update of 256 KiB behind it, it goes in one frame
	batchCommandsMax = 1 << 16   // in one entry, so that applying one does not keep the node from its peers for long
)

// Waiter is told of the end of what it asked for, once, on the goroutine that drives
// the Core or on that of the state machine. Done does not wait, and calls no method of
// the Core. Waiters are compared with ==.
type Waiter interface {
	Done(a fsm.Applied)
}

// Kind is what a command does to the state machine.
type Kind uint8

const (
	Update Kind = iota // one update: added, applied and committed
	Add                // rast.md 2.15: one update, applied and not committed
	Commit             // commits all that were added
	Revert             // undoes what was added and not committed
)

// command is one that was proposed and not answered.
type command struct {
	kind      Kind
	done      bool // answered, or nobody waits any more
	sent      bool
	uncertain bool  // an earlier one may be in the log, unseen
	tick      int64 // when it was proposed last
	data      []byte
	waiter    Waiter
}

// pending are the commands of this node's own session. Their sequence numbers
// follow each other, so they stand in a ring. What the log may have lost is
// proposed again; the session keeps it from being applied twice.
type pending struct {
	ring   []command
	floor  uint64 // the oldest one not answered
	next   uint64 // the one after the newest
	unsent uint64 // the oldest one that is to be proposed

	client  uint64                    // number of the session; 0: none yet
	opening bool                      // a command that opens one was proposed
	node    uint64                    // whose session it is
	types   string                    // what the node's program knows, see fsm.Batch.Describe
	nonce   uint64                    // of the command that opens it
	refused error                     // why the group does not give the node one
	check   func(update []byte) error // whether the log may have it; nil: all

	sentTerm  uint64 // where the newest was proposed, and when
	sentTick  int64
	waitTicks int64 // before all is proposed again
}

// newPending makes one that holds at most n commands, a power of two.
func newPending(n int, node, nonce uint64) pending {
	return pending{ring: make([]command, n), floor: 1, next: 1, unsent: 1, node: node, nonce: nonce}
}

func (p *pending) at(sequence uint64) *command { return &p.ring[sequence%uint64(len(p.ring))] }

// full reports whether there is no room for another.
func (p *pending) full() bool { return p.next-p.floor >= uint64(len(p.ring)) }

func (p *pending) len() int { return int(p.next - p.floor) }

// add takes a command and returns its sequence number.
func (p *pending) add(kind Kind, data []byte, w Waiter) uint64 {
	*p.at(p.next) = command{kind: kind, data: data, waiter: w}
	p.next++
	return p.next - 1
}

// abandon forgets w. It reports whether w was there, and whether the command may have
// been proposed, so that its outcome is not known.
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

// settle moves the floor over what is answered.
func (p *pending) advanceFloor() {
	for p.floor < p.next && p.at(p.floor).done {
		p.floor++
	}
	p.unsent = max(p.unsent, p.floor)
}

// isOpen reports whether somebody waits for a command of the session.
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
	first := !c.uncertain // else it may be late, and another wait as short may be too short
	c.finish()
	p.advanceFloor()
	if first || p.floor == p.next {
		p.waitTicks = 0
	}
	w.Done(a)
}

// renew has the next command that opens a session open another one, and not the same
// again.
func (p *pending) newNonce() { p.nonce = p.nonce*6364136223846793005 + 1442695040888963407 }

// expired begins another session, where this one is not there any more, or a client
// has used it, which no client may. What was proposed once, and is not answered, stands behind that in the log, if at
// all, and is not applied there: it is proposed again in the new session. What was
// proposed twice may have been applied the first time: nothing tells any more.
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

// fail ends the commands that were not proposed, and those that were; nil: they
// stay.
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

// again has all that is not answered proposed once more.
func (p *pending) repropose() {
	p.opening = false
	for s := p.floor; s < p.unsent; s++ {
		c := p.at(s)
		c.uncertain = c.sent
	}
	p.unsent = p.floor
}

// batch fills b with commands that are to be proposed, and returns the sequence
// behind the last; 0: there is nothing to propose.
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

// refuses ends a command whose update the log may not have.
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

// proposed is told that what batch gave is on its way.
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

// waits reports whether something was proposed and is not answered, and when the
// oldest was proposed last: what comes behind a lost one must not hide it.
func (p *pending) oldestUnanswered() (since int64, waits bool) {
	if p.floor < p.unsent {
		return p.at(p.floor).tick, true
	}
	return p.sentTick, p.opening
}
