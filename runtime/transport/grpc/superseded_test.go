package grpc

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
)

// nodeList is the list of nodes of a cluster: which process has each name, and since which position.
type nodeList struct {
	mu       sync.Mutex
	position uint64
	boots    map[string]uint64
	entered  map[uint64]uint64
}

func newList() *nodeList { return &nodeList{boots: map[string]uint64{}, entered: map[uint64]uint64{}} }

func (l *nodeList) enter(name string, boot uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.position++
	l.boots[name], l.entered[boot] = boot, l.position
}

// copyOf is the list as one node has it. It may lack the latest changes.
type copyOf struct {
	*nodeList
	boot uint64

	mu    sync.Mutex
	late  map[string]uint64 // not nil: what this node has in place of boots
	at    uint64            // its position then
	tried map[string]error
}

func (c *copyOf) Own() (boot, entered uint64) {
	c.nodeList.mu.Lock()
	defer c.nodeList.mu.Unlock()
	return c.boot, c.entered[c.boot]
}

func (c *copyOf) Admit(p Process, connected *Connected) error {
	c.nodeList.mu.Lock()
	defer c.nodeList.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	boots, at := c.boots, c.position
	if c.late != nil {
		boots, at = c.late, c.at
	}
	switch has := boots[p.Node]; {
	case has == p.Boot && connected != nil && connected.Entered > at:
		return &Refusal{ErrSuperseded, "a newer process is connected"}
	case has == p.Boot:
		return nil
	case has != 0 && p.Entered > 0 && p.Entered <= at:
		return &Refusal{ErrSuperseded, fmt.Sprintf("process %d has the name %q", has, p.Node)}
	case p.Entered > at:
		return nil
	}
	return connected.Held()
}

func (c *copyOf) Tried(peer string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tried == nil {
		c.tried = map[string]error{}
	}
	c.tried[peer] = err
}

func (c *copyOf) refused(peer string, kind error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Is(c.tried[peer], kind)
}

// freeze stops the changes of the copy until thaw.
func (c *copyOf) freeze() {
	c.nodeList.mu.Lock()
	defer c.nodeList.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late, c.at = maps.Clone(c.boots), c.position
}

func (c *copyOf) thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = nil
}

// replaced is a node, and two processes of another one.
type replaced struct {
	list   *nodeList
	copy   *copyOf // of n1
	old    *copyOf
	n1     *Transport
	first  *Transport
	second func() (*Transport, *copyOf) // starts it
	tally  *tally
}

func newReplaced(t *testing.T, p *pki) *replaced {
	l := newList()
	l.enter("n1", 1)
	r := &replaced{list: l, copy: &copyOf{nodeList: l, boot: 1}, old: &copyOf{nodeList: l, boot: 2}, tally: newTally(t)}
	c := p.config(t, "n1")
	c.Identity = r.copy
	r.n1 = start(t, c)
	r.n1.Handle(ledger, r.tally.receive)
	c = p.config(t, "n2")
	c.Identity = r.old
	r.first = start(t, c)
	r.first.SetPeer("n1", r.n1.Addr().String())
	await(t, "the first process to be connected", func() bool { return connected(r.first, r.n1) })
	l.enter("n2", 2)
	r.first.Send("n1", number(0))
	await(t, "a message of the first process", func() bool { return r.tally.from("n2") == 1 })
	r.second = func() (*Transport, *copyOf) {
		next := &copyOf{nodeList: l, boot: 3}
		c := p.config(t, "n2")
		c.Identity = next
		c.Peers = map[string]string{"n1": r.n1.Addr().String()}
		return start(t, c), next
	}
	return r
}

// check sends messages of both processes. Only those of the second one arrive.
func (r *replaced) check(t *testing.T, second *Transport) {
	t.Helper()
	await(t, "the second process to be connected", func() bool { return connected(second, r.n1) })
	await(t, "the first process to be refused", func() bool { return r.old.refused("n1", ErrSuperseded) })
	r.first.Send("n1", number(99))
	second.Send("n1", number(1))
	await(t, "a message of the second process", func() bool { return r.tally.from("n2") == 2 })
	if connected(r.first, r.n1) {
		t.Error("the first process is still connected")
	}
}

// TestSupersededProcess: the process that joined last has the name. It takes the connections of the
// process before, which is refused and learns why.
func TestSupersededProcess(t *testing.T) {
	t.Parallel() // it waits for connections
	both(t, func(t *testing.T, p *pki) {
		r := newReplaced(t, p)
		second, held := r.second()
		await(t, "the second process to be refused", func() bool { return held.refused("n1", ErrHeld) })
		if !connected(r.first, r.n1) {
			t.Error("a process that has not joined takes the connections of another one")
		}
		r.list.enter("n2", 3)
		r.check(t, second)
	})
}

// TestSupersededProcessIsCutOff: the connections of a process end when another one has joined under its
// name, although that one is not connected.
func TestSupersededProcessIsCutOff(t *testing.T) {
	t.Parallel() // it waits for connections
	both(t, func(t *testing.T, p *pki) {
		r := newReplaced(t, p)
		r.first.SetPeer("n1", r.n1.Addr().String())
		r.first.RemovePeer("n1") // its next hello has its entry
		await(t, "the end of the stream", func() bool { return !connected(r.first, r.n1) })
		r.first.SetPeer("n1", r.n1.Addr().String())
		await(t, "the first process to be connected again", func() bool { return connected(r.first, r.n1) })
		r.list.enter("n2", 3)
		r.n1.Recheck()
		await(t, "the first process to be refused", func() bool { return r.old.refused("n1", ErrSuperseded) })
		second, _ := r.second()
		r.check(t, second)
	})
}

// TestAPeerIsBehind: a node whose list does not have a process yet accepts the process, because it shows that it was
// entered later.
func TestAPeerIsBehind(t *testing.T) {
	t.Parallel() // it waits for connections
	both(t, func(t *testing.T, p *pki) {
		r := newReplaced(t, p)
		r.copy.freeze()
		r.list.enter("n2", 3)
		second, _ := r.second()
		await(t, "the second process to be connected", func() bool { return connected(second, r.n1) })
		r.copy.thaw()
		r.n1.Recheck()
		r.check(t, second)
	})
}

// TestReplacedDialler: a node does not send to a process whose name another one has.
func TestReplacedDialler(t *testing.T) {
	t.Parallel() // it waits for connections
	r := newReplaced(t, nil)
	r.n1.SetPeer("n2", r.first.Addr().String())
	await(t, "n1 to reach the first process", func() bool { return connected(r.n1, r.first) })
	r.list.enter("n2", 3)
	r.n1.Recheck()
	await(t, "n1 to refuse the first process", func() bool {
		r.copy.mu.Lock()
		defer r.copy.mu.Unlock()
		return r.copy.tried["n2"] != nil && !connected(r.n1, r.first)
	})
	if r.copy.refused("n2", ErrSuperseded) {
		t.Error("n1 believes that another process has its name")
	}
}
