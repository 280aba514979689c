package raft_test

import (
	"iter"
)

// coroutine is a loop of a node. When the world resumes it, it runs until its next wait.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	until int64 // time at which to continue within a turn; 0: not within a turn
}

func newCoroutine(body func(c *coroutine)) *coroutine {
	c := new(coroutine)
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		body(c)
	})
	c.next() // run until the first wait
	return c
}

// wait suspends the coroutine. It returns false if the coroutine must end.
func (c *coroutine) wait(until int64) bool {
	c.until = until
	return c.yield(struct{}{})
}

// runLoop does the work of Node.run.
func (n *node) runLoop(c *coroutine) {
	for c.wait(0) {
		tick := n.ticks
		n.ticks = false
		if n.ended = n.raft.Turn(tick); n.ended != nil {
			return
		}
		n.raft.Release()
	}
}

// runApplier does the work of the node's applier.
func (n *node) runApplier(c *coroutine) {
	for c.wait(0) {
		for n.raft.ApplierTurn() && n.failing == nil {
		}
	}
}

// runSnapshotter does the work of the node's snapshotter.
func (n *node) runSnapshotter(c *coroutine) {
	for c.wait(0) && n.raft.SnapshotterTurn() {
	}
}

// run runs the loops of the node in random order until they have nothing to do.
func (n *node) run() {
	for range 20 {
		turns := []func() bool{n.resumeLoop, n.resumeApplier, n.resumeSnapshotter}
		n.w.rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		ran := false
		for _, resume := range turns {
			ran = resume() || ran
		}
		switch {
		case n.failing != nil:
			n.crash("crash within a turn")
			return
		case n.ended != nil:
			n.stop(n.ended)
			return
		case !ran:
			n.checkLeaders()
			return
		}
	}
	n.checkLeaders()
}

func (n *node) resumeLoop() bool {
	c := n.loop
	within := c.until != 0
	if n.failing != nil || n.ended != nil || c.until > n.w.now || !within && !n.ticks && !n.raft.Woken() {
		return false
	}
	n.resume(c)
	return true
}

func (n *node) resumeApplier() bool {
	c := n.applier
	within := c.until != 0
	if n.failing != nil || n.busy > n.w.now || c.until > n.w.now || !within && !n.raft.ApplierWoken() {
		return false
	}
	n.resume(c)
	return true
}

func (n *node) resumeSnapshotter() bool {
	c := n.snapshotter
	within := c.until != 0
	if n.failing != nil || c.until > n.w.now || !within && !n.raft.SnapshotterWoken() {
		return false
	}
	n.resume(c)
	return true
}

func (n *node) resume(c *coroutine) {
	n.running = c
	c.next()
	n.running = nil
}

// crashPoint is called where the node may crash, or wait for its disk.
func (n *node) crashPoint(disk bool) error {
	w := n.w
	if n.failing == nil && !w.noFaults && w.rng.IntN(6000) == 0 {
		n.failing = errCrashed
	}
	if n.failing != nil || !disk || n.running == nil { // no coroutine runs: NewNode is creating the node
		return n.failing
	}
	if !w.noFaults && w.rng.IntN(8) == 0 && !n.running.wait(w.now+1+w.rng.Int64N(4)) {
		return errCrashed
	}
	for n.disk.Hung() {
		if !n.running.wait(w.now + 1) {
			return errCrashed
		}
	}
	return n.failing
}
