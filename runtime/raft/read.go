package raft

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// reads are the reads that wait until the node has applied everything that was committed
// when they began (Ongaro's thesis, 6.4: ReadIndex). All reads that begin in one
// iteration share one round to the majority.
type reads struct {
	waiting []Waiter    // reads that came after the last round began
	rounds  []readRound // in order
	number  uint64

	committedTerm uint64 // term of the newest committed entry
}

// readRound is one request to the majority.
type readRound struct {
	number  uint64
	term    uint64
	tick    int64
	began   time.Duration // by the node's clock
	index   uint64        // must be applied before the reads; 0: not known yet
	waiters []Waiter
}

const readKeyBytes = 16

// readKey identifies a round among all starts of all nodes, by the nonce of the start: an
// answer may still be in flight when the node restarts.
func readKey(nonce, number uint64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, readKeyBytes), nonce)
	return binary.BigEndian.AppendUint64(b, number)
}

// begin starts a round for all reads that wait.
func (r *reads) begin(nonce, term uint64, tick int64, now time.Duration) (key []byte) {
	r.number++
	r.rounds = append(r.rounds, readRound{number: r.number, term: term, tick: tick, began: now, waiters: r.waiting})
	r.waiting = nil
	return readKey(nonce, r.number)
}

// setIndex sets the index of a round, and returns the round, or nil if it is not a round
// of this start.
func (r *reads) setIndex(nonce uint64, key []byte, index uint64) *readRound {
	if len(key) != readKeyBytes || binary.BigEndian.Uint64(key) != nonce {
		return nil
	}
	number := binary.BigEndian.Uint64(key[8:])
	for i := range r.rounds {
		if r.rounds[i].number == number {
			r.rounds[i].index = max(index, 1)
			return &r.rounds[i]
		}
	}
	return nil
}

// add adds a read that may run when all entries up to an index are applied.
func (r *reads) add(w Waiter, index uint64) {
	r.rounds = append(r.rounds, readRound{index: max(index, 1), waiters: []Waiter{w}})
}

// ready removes and returns the reads that may run when all entries up to an index are
// applied.
func (r *reads) ready(applied uint64, list []Waiter) []Waiter {
	rest := r.rounds[:0]
	for _, o := range r.rounds {
		if o.index != 0 && o.index <= applied {
			list = append(list, o.waiters...)
		} else {
			rest = append(rest, o)
		}
	}
	clear(r.rounds[len(rest):])
	r.rounds = rest
	return list
}

// retry makes the reads of rounds that may be lost wait for a new round.
func (r *reads) retry(lost func(*readRound) bool) {
	rest := r.rounds[:0]
	for i := range r.rounds {
		if o := &r.rounds[i]; o.index == 0 && lost(o) {
			r.waiting = append(r.waiting, o.waiters...)
		} else {
			rest = append(rest, *o)
		}
	}
	clear(r.rounds[len(rest):])
	r.rounds = rest
}

// abandon removes the waiter of a read. It reports whether the waiter was there.
func (r *reads) abandon(w Waiter) (found bool) {
	lists := []*[]Waiter{&r.waiting}
	for i := range r.rounds {
		lists = append(lists, &r.rounds[i].waiters)
	}
	for _, list := range lists {
		if i := slices.Index(*list, w); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	return false
}

// fail ends all reads.
func (r *reads) fail(err error) {
	list := r.waiting
	for _, o := range r.rounds {
		list = append(list, o.waiters...)
	}
	*r = reads{number: r.number}
	for _, w := range list {
		w.Done(fsm.Applied{Err: err})
	}
}
