package raft_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// lists is the state of the simulation: lists of numbers.
type lists struct{ items [3][]uint64 }

func (l *lists) clone() *lists {
	c := new(lists)
	for i := range l.items {
		c.items[i] = slices.Clone(l.items[i])
	}
	return c
}

func (l *lists) equal(o *lists) bool {
	for i := range l.items {
		if !slices.Equal(l.items[i], o.items[i]) {
			return false
		}
	}
	return true
}

// appendTo appends a number to a list. If length is not -1, it does so only if the list has this
// length. If the number is divisible by 17, it panics after the change; otherwise, if the number is
// divisible by 13, it fails.
type appendTo struct {
	list   int
	number uint64
	length int
}

var errOtherLength = errors.New("another length")
var errThirteen = errors.New("divisible by 13")

func (a *appendTo) Update(l *lists) error {
	if a.length >= 0 && len(l.items[a.list]) != a.length {
		return errOtherLength
	}
	if a.number%13 == 0 && a.number%17 != 0 {
		return errThirteen
	}
	l.items[a.list] = append(l.items[a.list], a.number)
	if a.number%17 == 0 {
		panic("half way")
	}
	return nil
}

func (a *appendTo) Revert(l *lists) error {
	l.items[a.list] = l.items[a.list][:len(l.items[a.list])-1]
	return nil
}

var listsDefinition = fsm.Definition[lists, appendTo, struct{}]{
	Update: fsm.NoResult((*appendTo).Update), Revert: (*appendTo).Revert,
	StateCodec: listsCodec, UpdateCodec: appendCodec,
}

var listsCodec = fsm.Codec[lists]{
	Append: func(b []byte, l *lists) ([]byte, error) {
		for _, list := range l.items {
			b = protowire.AppendVarint(b, uint64(len(list)))
			for _, v := range list {
				b = protowire.AppendVarint(b, v)
			}
		}
		return b, nil
	},
	Consume: func(b []byte, l *lists) error {
		next := func() uint64 {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				b = nil
				return 0
			}
			b = b[n:]
			return v
		}
		for i := range l.items {
			for range next() {
				l.items[i] = append(l.items[i], next())
			}
		}
		return nil
	},
}

var appendCodec = fsm.Codec[appendTo]{
	Append: func(b []byte, a *appendTo) ([]byte, error) {
		b = protowire.AppendVarint(b, uint64(a.list))
		b = protowire.AppendVarint(b, a.number)
		return protowire.AppendVarint(b, uint64(a.length+1)), nil
	},
	Consume: func(b []byte, a *appendTo) error {
		var v [3]uint64
		for i := range v {
			x, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return errors.New("too short")
			}
			v[i], b = x, b[n:]
		}
		if v[0] > 2 {
			return errors.New("unknown list")
		}
		a.list, a.number, a.length = int(v[0]), v[1], int(v[2])-1
		return nil
	},
}

// history contains the operations and answers of all clients.
type history struct {
	operations []porcupine.Operation
	acked      map[uint64]bool // numbers that must be in a list
	refused    map[uint64]bool // numbers that must not be in a list
	last       uint64
}

// input is the input of an operation, for porcupine.
type input struct {
	read   bool
	number uint64 // to append
	length int
	list   int
}

// output is the output of an operation, for porcupine.
type output struct {
	unknown bool
	refused bool // an append whose condition did not hold
	items   string
}

var model = porcupine.Model{
	Partition: func(list []porcupine.Operation) (parts [][]porcupine.Operation) {
		parts = make([][]porcupine.Operation, 3)
		for _, o := range list {
			i := o.Input.(input).list
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, in, out any) (bool, any) {
		i, o, s := in.(input), out.(output), state.(string)
		n := len(s) / 8
		switch {
		case i.read:
			return o.items == s, s
		case o.refused:
			return i.length >= 0 && n != i.length, s
		}
		return i.length < 0 || n == i.length, s + packed(i.number)
	},
}

func packed(list ...uint64) string {
	var b []byte
	for _, v := range list {
		b = append(b, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return string(b)
}

// client starts one request after another, each at a random node.
type client struct {
	w        *world
	number   int
	request  *clientRequest
	next     int64  // time of the next request
	session  uint64 // the client's own session; 0: the session of the node
	sequence uint64
}

// clientRequest is a request of a client that is not answered yet. It is a raft.Waiter.
type clientRequest struct {
	c        *client
	n        *node
	raft     *raft.Node
	in       input
	began    int64
	deadline int64
	proposal *raft.InboxProposal
	session  uint64
	opens    bool
	done     bool
	tries    int
}

func (c *client) busy() bool { return c.request != nil }

func (c *client) step() {
	if a := c.request; a != nil {
		if c.w.now >= a.deadline {
			a.abandon()
		}
		return
	}
	if c.w.now < c.next || c.w.noFaults && !c.w.clientsActive {
		return
	}
	rng := c.w.rng
	n := c.w.nodes[rng.IntN(len(c.w.nodes))]
	if !n.up() {
		return
	}
	a := &clientRequest{c: c, n: n, raft: n.raft, began: c.w.now, deadline: c.w.now + 20 + rng.Int64N(8*electionTime)}
	a.in = input{list: rng.IntN(3), length: -1}
	c.request = a
	switch {
	case rng.IntN(3) == 0:
		a.in.read = true
		a.raft.PutRead(a, rng.IntN(2) == 0)
	case c.number == 0 && (c.session == 0 || rng.IntN(3) == 0): // often, so that other sessions expire
		a.opens = true
		nonce, client := rng.Uint64()|1, fmt.Sprint("client ", rng.IntN(2)) // the same name has several sessions
		a.do(func(core *raft.Core) error { return core.OpenSession(client, nonce, a) })
	default:
		c.w.history.last++
		a.in.number = c.w.history.last
		if rng.IntN(3) == 0 {
			n.machine.View(func(l *lists) { a.in.length = len(l.items[a.in.list]) })
		}
		if c.number == 0 {
			a.session = c.session
			c.sequence++
		}
		a.propose()
	}
}

// do calls a function in the node's loop. Its error is the answer to the request.
func (a *clientRequest) do(call func(*raft.Core) error) {
	a.raft.Do(func(core *raft.Core) {
		if err := call(core); err != nil {
			a.Done(fsm.Applied{Err: err})
		}
	})
}

// propose proposes the append, in the client's own session or in the session of the node.
func (a *clientRequest) propose() {
	a.tries++
	data, _ := appendCodec.Append(nil, &appendTo{a.in.list, a.in.number, a.in.length})
	if a.session != 0 {
		sequence := a.c.sequence
		a.do(func(core *raft.Core) error { return core.ProposeAs(a.session, sequence, sequence, data, a) })
		return
	}
	a.proposal = a.raft.PutProposal(raft.Update, data, a)
}

// abandon ends an attempt at its deadline. A client with its own session repeats the request at
// another node.
func (a *clientRequest) abandon() {
	c := a.c
	if a.session != 0 && !a.in.read {
		sequence := c.sequence
		a.raft.Do(func(core *raft.Core) { core.AbandonAs(a.session, sequence, a) })
		a.deadline = c.w.now + 50
		n := c.w.nodes[c.w.rng.IntN(len(c.w.nodes))]
		if l := c.w.leader(); c.w.noFaults && l != nil {
			n = l // without faults the client finds the leader
		}
		if n.up() {
			c.w.count("request repeated")
			a.n, a.raft = n, n.raft
			a.deadline += c.w.rng.Int64N(8 * electionTime)
			a.propose()
		}
		return
	}
	if a.proposal != nil {
		a.proposal.Abandon()
	}
	a.Done(fsm.Applied{Err: fsm.ErrUnknown})
}

// Done receives the answer.
func (a *clientRequest) Done(r fsm.Applied) {
	c := a.c
	w := c.w
	if a.done || c.request != a {
		return
	}
	if a.session != 0 && !a.in.read && r.Err != nil && r.Index == 0 && !errors.Is(r.Err, fsm.ErrSessionExpired) { // not applied here, or the outcome is unknown
		a.deadline = w.now + 10 // then it asks another node
		return
	}
	a.done, c.request = true, nil
	c.next = w.now + w.rng.Int64N(40)
	w.note("answer", c.number, a.in.number, fmt.Sprint(r.Err))
	if a.opens {
		if r.Err == nil {
			c.session, c.sequence = r.Client, 0
			w.count("session opened")
		}
		return
	}
	out := output{}
	switch {
	case a.in.read:
		out.unknown = r.Err != nil
		if r.Err == nil && a.n.raft == a.raft {
			a.n.machine.View(func(l *lists) { out.items = packed(l.items[a.in.list]...) })
			w.count("read")
		} else {
			return
		}
	case r.Err == nil:
		w.history.put(&w.history.acked, a.in.number)
		w.count("append")
	case errors.Is(r.Err, errOtherLength) || r.Err.Error() == errOtherLength.Error():
		out.refused = true
		w.history.put(&w.history.refused, a.in.number)
		w.count("append refused")
	case errors.Is(r.Err, fsm.ErrSessionExpired) && a.session != 0:
		c.session = 0
		out.unknown = true
		w.count("session expired")
	case !fsm.OutcomeKnown(r.Err):
		out.unknown = true
		w.count("outcome unknown")
	default: // the append failed, or was never proposed
		w.history.put(&w.history.refused, a.in.number)
		w.count("append failed")
		return
	}
	end := w.now
	if out.unknown {
		end = chaosTime + quietTime + 1 // it may be applied at any later time
	}
	w.history.operations = append(w.history.operations, porcupine.Operation{
		ClientId: len(w.history.operations), Input: a.in, Output: out, Call: a.began, Return: end,
	})
}

func (h *history) put(set *map[uint64]bool, number uint64) {
	if *set == nil {
		*set = map[uint64]bool{}
	}
	(*set)[number] = true
}

// check compares the history with the lists at the end.
func (h *history) check(w *world, end *lists) {
	found := map[uint64]int{}
	for _, list := range end.items {
		for _, v := range list {
			found[v]++
		}
	}
	for _, v := range slices.Sorted(maps.Keys(found)) {
		if found[v] > 1 {
			w.fail("number %d must be applied once, got %d times", v, found[v])
		}
		if h.refused[v] {
			w.fail("number %d was refused, but is in a list", v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(h.acked)) {
		if found[v] == 0 {
			w.fail("number %d was acknowledged, but is not in a list", v)
		}
	}
	// No number is ever removed from a list. So the lists at the end show whether the appends
	// with an unknown outcome were applied.
	var known []porcupine.Operation
	for _, o := range h.operations {
		if out := o.Output.(output); out.unknown {
			if found[o.Input.(input).number] == 0 {
				continue
			}
			o.Output = output{}
		}
		known = append(known, o)
	}
	for i, list := range end.items {
		known = append(known, porcupine.Operation{
			ClientId: len(known), Input: input{read: true, list: i}, Output: output{items: packed(list...)}, Call: w.now, Return: chaosTime + quietTime + 2,
		})
	}
	switch result := porcupine.CheckOperationsTimeout(model, known, 20*time.Second); result {
	case porcupine.Illegal:
		w.fail("the history of %d operations is not linearizable", len(known))
	case porcupine.Unknown:
		w.count("porcupine gave up")
	}
}
