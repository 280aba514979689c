package raft_test

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// disturb does harm, now and then.
func (w *world) disturb() {
	if w.rng.IntN(60) != 0 {
		return
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	other := w.nodes[w.rng.IntN(len(w.nodes))]
	switch w.rng.IntN(20) {
	case 0, 1:
		n.crash("crash")
	case 2:
		if n.raft != nil {
			w.count("failing sync")
			n.disk.FailSync()
		}
	case 3, 4:
		if n.raft != nil {
			w.count("pause")
			n.asleep = w.now + w.rng.Int64N(4*electionTime)
		}
	case 5:
		w.count("one-way cut")
		w.net.Cut(n.number, other.number, true)
	case 6:
		w.count("isolated")
		w.net.Isolate(n.number)
	case 7:
		w.count("split")
		for _, a := range w.nodes {
			for _, b := range w.nodes {
				if (a.number <= n.number) != (b.number <= n.number) {
					w.net.Cut(a.number, b.number, true)
				}
			}
		}
	case 8, 9:
		w.net.Heal()
	case 10:
		w.count("bad network")
		w.net.SetFaults(transport.Faults{
			Loss: w.rng.Float64() * 0.4, Duplicate: w.rng.Float64() * 0.4,
			DelayMin: w.rng.Int64N(5), DelayMax: w.rng.Int64N(2 * electionTime),
		})
	case 11:
		w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 5})
	case 12:
		w.count("clock jump")
		n.skew += w.rng.Int64N(1<<40) - 1<<39
		n.slowness = w.rng.Int64N(7) - 3
	case 13:
		w.transfer(n, other)
	case 14, 15:
		w.changeMembers()
	case 16:
		if n.raft != nil {
			w.count("slow state machine")
			n.busy = w.now + w.rng.Int64N(8*electionTime)
		}
	case 17:
		if n.disk.Hung() || w.rng.IntN(2) == 0 {
			n.disk.Hang(false)
		} else if n.raft != nil {
			w.count("hanging disk")
			n.disk.Hang(true)
		}
	case 18:
		w.cutLeader(w.rng.IntN(2) == 0)
	case 19:
		for _, o := range w.nodes {
			o.disk.Hang(false)
		}
	}
}

// cutLeader loses all that comes to the leader, or all that it sends.
func (w *world) cutLeader(inbound bool) {
	l := w.leader()
	if l == nil {
		return
	}
	w.count("leader cut one way")
	for _, o := range w.nodes {
		if inbound {
			w.net.Cut(o.number, l.number, true)
		} else {
			w.net.Cut(l.number, o.number, true)
		}
	}
}

// transfer asks a leader to let another lead.
func (w *world) transfer(n, to *node) {
	if n.up() {
		n.raft.Do(func(c *raft.Core) {
			if c.TransferLeader(to.id) == nil {
				w.count("transfer")
			}
		})
	}
}

// changeMembers adds a machine, promotes or removes one.
func (w *world) changeMembers() {
	for _, n := range w.nodes {
		if !n.up() || n.core.Status().Role != "leader" {
			continue
		}
		var list []raft.Change
		members := n.core.Status().Members
		voters := 0
		for _, m := range members {
			if !m.Removed && !m.Learner {
				voters++
			}
			if m.Learner && !m.Removed && w.rng.IntN(2) == 0 {
				list = append(list, raft.Change{Kind: raft.Promote, Name: m.Name})
			}
		}
		if m := members[w.rng.IntN(len(members))]; !m.Removed && voters > 3 && len(list) == 0 && w.rng.IntN(3) == 0 {
			list = append(list, raft.Change{Kind: raft.Remove, Name: m.Name})
		}
		for _, spare := range w.nodes[len(w.nodes)-2:] {
			if !spare.member && !spare.gone && w.rng.IntN(2) == 0 {
				kind := raft.AddLearner
				if w.rng.IntN(3) == 0 {
					kind = raft.AddVoter
				}
				list = append(list, raft.Change{Kind: kind, Name: spare.name})
			}
		}
		if len(list) == 0 {
			return
		}
		n.changeMembers(list, &changeWaiter{w, list})
		w.count(fmt.Sprintf("change of %d members", len(list)))
		for _, c := range list {
			for _, spare := range w.nodes {
				if spare.name == c.Name && (c.Kind == raft.AddLearner || c.Kind == raft.AddVoter) && !spare.member {
					spare.member = true
					spare.start()
				}
			}
		}
		return
	}
}

// changeMembers asks the node for changes.
func (n *node) changeMembers(list []raft.Change, waiter raft.Waiter) {
	n.raft.Do(func(c *raft.Core) {
		if err := c.ChangeMembers(list, waiter); err != nil {
			waiter.Done(fsm.Applied{Err: err})
		}
	})
}

// changeWaiter counts the changes that came about.
type changeWaiter struct {
	w    *world
	list []raft.Change
}

func (c *changeWaiter) Done(a fsm.Applied) {
	if a.Err == nil {
		c.w.count("members changed")
	} else if errors.Is(a.Err, raft.ErrMembers) {
		c.w.count("change refused")
	} else if !errors.Is(a.Err, fsm.ErrUnknown) && !errors.Is(a.Err, fsm.ErrNotLeader) && !errors.Is(a.Err, errCrashed) && !errors.Is(a.Err, wal.ErrFailed) {
		c.w.fail("a change of the members: %v", a.Err)
	}
}

// calm ends all harm. Members that were removed, without having heard of it, are
// switched off.
func (w *world) calm() {
	w.quiet = true
	w.net.Heal()
	w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 5})
	for _, n := range w.nodes {
		n.asleep, n.busy, n.slowness = 0, 0, 0
		n.disk.Hang(false)
		if n.raft == nil && n.member {
			n.restart = w.now + 1
		}
	}
}
