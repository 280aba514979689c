package raft_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// injectFault injects a random fault from time to time.
func (w *world) injectFault() {
	if w.rng.IntN(60) != 0 {
		return
	}
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	other := w.nodes[w.rng.IntN(len(w.nodes))]
	switch w.rng.IntN(22) {
	case 20:
		if w.mayWipe(n) {
			n.wipe()
		}
	case 21:
		if n.removed { // the disk is emptied, and the node may be added again
			n.removed, n.disk = false, newMemoryDisk(w.rng.Uint64())
		}
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
			n.pausedUntil = w.now + w.rng.Int64N(4*electionTime)
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

// cutLeader cuts the leader off in one direction: either all messages to it are lost, or all
// messages from it.
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

// transfer makes a leader transfer the leadership.
func (w *world) transfer(n, to *node) {
	if n.up() {
		n.raft.Do(func(c *raft.Core) {
			if c.TransferLeader(to.id) == nil {
				w.count("transfer")
			}
		})
	}
}

// changeMembers adds, promotes, renames or removes random nodes. It also removes members with
// emptied disks, as an operator would.
func (w *world) changeMembers() {
	if w.now-w.wiped < 2*electionTime { // the leader may not have noticed yet that the node was wiped
		return
	}
	for _, n := range w.nodes {
		if !n.up() || n.core.Status().Role != "leader" {
			continue
		}
		var list []raft.Change
		members := n.core.Status().Members
		voters := 0
		named := map[string]bool{}
		for _, m := range members {
			named[m.Name] = true
			if !m.Leaving && !m.Learner {
				voters++
			}
			if m.Learner && !m.Leaving && w.rng.IntN(2) == 0 {
				list = append(list, raft.Change{Kind: raft.Promote, Name: m.Name})
			}
		}
		if m := members[w.rng.IntN(len(members))]; !m.Leaving && voters > 3 && len(list) == 0 && w.rng.IntN(3) == 0 {
			list = append(list, raft.Change{Kind: raft.Remove, Name: m.Name})
		}
		if m := members[w.rng.IntN(len(members))]; !m.Leaving && len(list) == 0 && w.rng.IntN(4) == 0 {
			w.renames++
			list = append(list, raft.Change{Kind: raft.Rename, Name: m.Name, To: fmt.Sprintf("m%d", w.renames)})
		}
		for _, m := range members {
			if w.isLost(m.ID) && !m.Leaving && voters > 1 && w.rng.IntN(2) == 0 {
				list = []raft.Change{{Kind: raft.Remove, Name: m.Name}}
			}
		}
		for _, o := range w.nodes {
			switch _, known := named[o.name]; {
			case w.rng.IntN(2) == 0:
			case !known && !o.removed && (o.lost || !o.member):
				kind := raft.AddLearner
				if w.rng.IntN(3) == 0 {
					kind = raft.AddVoter
				}
				list = append(list, raft.Change{Kind: kind, Name: o.name})
				o.join()
			}
		}
		if len(list) == 0 {
			return
		}
		w.changing++
		n.changeMembers(list, &changeWaiter{w, list})
		w.count(fmt.Sprintf("change of %d members", len(list)))
		return
	}
}

// join starts a node that will be added to the group, if it does not run. Some nodes are started
// without Join, or with peers that are not members.
func (n *node) join() {
	w := n.w
	if n.member {
		return
	}
	n.member = true
	n.joins = w.rng.IntN(2) == 0
	n.peers = map[string]string{n.name: ""}
	for _, o := range w.nodes {
		if o.member && w.rng.IntN(2) == 0 {
			n.peers[o.name] = ""
		}
	}
	n.peers[w.nodes[0].name] = ""
	if len(n.peers) == 1 {
		n.peers[w.nodes[1].name] = ""
	}
	if !n.joins {
		w.count("forgotten join flag")
	}
	n.start()
}

// isLost reports whether the disk of the member with an id was emptied.
func (w *world) isLost(id uint64) bool {
	return !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.disk.record.ID == id })
}

// wipe empties the disk of a node, which restarts under its name.
func (n *node) wipe() {
	n.w.count("disk wiped")
	n.w.wiped = n.w.now
	if n.raft != nil {
		n.crash("crash")
	}
	if len(n.peers) == 1 { // the operator has added the joined nodes to its peers
		n.peers = map[string]string{}
		for _, o := range n.w.nodes {
			if o.member {
				n.peers[o.name] = ""
			}
		}
	}
	n.disk, n.lost, n.id = newMemoryDisk(n.w.rng.Uint64()), true, 0
	n.restart = n.w.now + 1 + n.w.rng.Int64N(6*electionTime)
}

// mayWipe reports whether the group survives the loss of a disk. In the newest log a majority of the
// voters must remain, and no change of the members may be in progress. Before the group is founded,
// a majority of the first members must remain: one of them may have been paused, and may later found
// the group with the disks that the others had before.
func (w *world) mayWipe(n *node) bool {
	var newest *node
	lost := 0
	ids := map[uint64]bool{}
	for _, o := range w.nodes {
		if o != n {
			ids[o.disk.record.ID] = true
		}
		switch {
		case !o.member:
		case o.lost:
			lost++
		case o.raft == nil || o.core.ChangesAhead():
			return false
		case newest == nil || o.core.Status().Applied > newest.core.Status().Applied:
			newest = o
		}
	}
	if newest == nil || w.changing > 0 || w.now-w.changed < 3*electionTime {
		return false
	}
	voters, alive := 0, 0
	for _, m := range newest.core.Status().Members {
		if m.Learner {
			continue
		}
		voters++
		if ids[m.ID] {
			alive++
		}
	}
	if voters == 0 {
		return lost < (len(n.peers)-1)/2
	}
	return alive > voters/2
}

// wipeStray empties the disk of a node that is not in the group of the leader. Such a second group
// can be founded if a disk is emptied at that moment.
func (w *world) wipeStray() {
	leader := w.leader()
	if leader == nil {
		return
	}
	for _, n := range w.nodes {
		if n.raft != nil && n.raft.GroupID() != 0 && n.raft.GroupID() != leader.raft.GroupID() {
			w.count("stray node")
			n.wipe()
		}
	}
}

// changeMembers starts changes at the node.
func (n *node) changeMembers(list []raft.Change, waiter raft.Waiter) {
	n.raft.Change(list, waiter)
}

// changeWaiter counts the results of changes.
type changeWaiter struct {
	w    *world
	list []raft.Change
}

func (c *changeWaiter) Done(a fsm.Applied) {
	c.w.changed = c.w.now
	c.w.changing--
	if a.Err == nil {
		c.w.count("members changed")
	} else if errors.Is(a.Err, raft.ErrMembers) {
		c.w.count("change refused")
	} else if !errors.Is(a.Err, fsm.ErrUnknown) && !errors.Is(a.Err, fsm.ErrNotLeader) && !errors.Is(a.Err, errCrashed) && !errors.Is(a.Err, wal.ErrFailed) {
		c.w.fail("a change of the members: %v", a.Err)
	}
}

// endFaults ends all faults, and starts the members that are down.
func (w *world) endFaults() {
	w.noFaults = true
	w.net.Heal()
	w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 5})
	for _, n := range w.nodes {
		n.pausedUntil, n.busy, n.slowness = 0, 0, 0
		n.disk.Hang(false)
		if n.repair != nil {
			n.repair()
			n.repair = nil
			n.crash("crash")
		}
		if n.raft == nil && n.member {
			n.restart = w.now + 1
		}
	}
}
