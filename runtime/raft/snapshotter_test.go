package raft_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// behind is a calm world, and a follower in it that needs a snapshot of many parts to come
// up with its leader.
func withLateFollower(t *testing.T, seed uint64) (w *world, leader, late *node) {
	t.Helper()
	w = calmWorld(t, seed)
	leader = w.leader()
	late = w.others(leader)[0]
	w.net.Isolate(late.number)
	for number := range uint64(100) {
		w.appended(leader, 1+13*17*number)
	}
	for _, n := range w.nodes[:simPeers] {
		n.raft.SetPartBytes(8)
		if n != late {
			n.raft.TrySnapshot()
		}
	}
	w.until("snapshots", func() bool {
		return leader.core.Status().First > late.core.Status().Last && w.others(leader)[1].core.Status().First > late.core.Status().Last
	})
	return w, leader, late
}

// transfer is the snapshot that a leader sends to a member; nil: none.
func (n *node) transferTo(to *node) *raft.Transfer {
	for _, m := range n.raft.StatusNow().Members {
		if m.ID == to.id {
			return m.Transfer
		}
	}
	return nil
}

// underWay runs the world until some of a snapshot has come.
func (w *world) underWay(leader, to *node) *raft.Transfer {
	w.t.Helper()
	var at *raft.Transfer
	w.until("part of a snapshot", func() bool {
		at = leader.transferTo(to)
		return at != nil && at.Came > 0
	})
	if at.Came >= at.Size {
		w.t.Fatalf("all of the snapshot is there at once: %+v", at)
	}
	return at
}

// caughtUp runs the world until a node has what its leader has, by a snapshot.
func (w *world) caughtUp(n *node) {
	w.t.Helper()
	before := w.counts["restore"]
	w.until("node that has caught up", func() bool {
		l := w.leader()
		return l != nil && n.raft != nil && n.machine.Applied() == l.machine.Applied() && n.machine.Applied() >= w.newest
	})
	if w.counts["restore"] == before {
		w.t.Error("it did not need a snapshot")
	}
}

// TestSnapshotsOverABadNetwork arrive, although each part may be lost, doubled and
// overtaken.
func TestSnapshotsOverABadNetwork(t *testing.T) {
	for seed := range uint64(5) {
		w, _, late := withLateFollower(t, 100*seed)
		w.net.SetFaults(transport.Faults{Loss: 0.2, Duplicate: 0.2, DelayMin: 1, DelayMax: 2 * tickTime})
		w.net.Heal()
		w.caughtUp(late)
	}
}

// TestAReceiverThatStartsAgain in the middle of a transfer gets the snapshot from its
// beginning, and keeps nothing of the first attempt.
func TestAReceiverThatStartsAgain(t *testing.T) {
	w, leader, late := withLateFollower(t, 1000)
	w.net.Heal()
	w.underWay(leader, late)
	late.crash("crash")
	w.until("a restart", late.up)
	if at := late.core.SnapshotIndex(); at > 1 {
		t.Errorf("half a snapshot, at %d, is there after the restart", at)
	}
	w.caughtUp(late)
}

// TestASenderThatStartsAgain, or that does not lead any more, leaves the transfer to the
// next leader.
func TestASenderThatStartsAgain(t *testing.T) {
	w, leader, late := withLateFollower(t, 2000)
	w.net.Heal()
	w.underWay(leader, late)
	leader.crash("crash")
	w.otherLeader(leader)
	w.caughtUp(late)

	w, leader, late = withLateFollower(t, 3000)
	w.net.Heal()
	w.underWay(leader, late)
	other := w.others(leader)[1]
	leader.raft.Do(func(c *raft.Core) {
		if err := c.TransferLeader(other.id); err != nil {
			t.Error(err)
		}
	})
	w.until("another leader", func() bool { return w.leader() == other })
	if at := leader.transferTo(late); at != nil {
		w.until("end of the first transfer", func() bool { return leader.transferTo(late) == nil })
	}
	w.caughtUp(late)
}

// TestAStoppedTransferGoesOn where it was, when the connection is there again.
func TestAStoppedTransferGoesOn(t *testing.T) {
	w, leader, late := withLateFollower(t, 4000)
	w.net.Heal()
	at := w.underWay(leader, late)
	w.net.Isolate(late.number)
	w.advance(electionTime / 2)
	w.net.Heal()
	w.step()
	if again := leader.transferTo(late); again == nil || again.Came < at.Came || again.Index != at.Index {
		t.Errorf("it had come to %+v, and now %+v", at, again)
	}
	w.caughtUp(late)
}

var errNoRoom = errors.New("no room for that")

// TestASnapshotThatCannotBeDecoded does not take the place of the one that is there: the
// member goes on with its own, the leader says why, and tries again.
func TestASnapshotThatCannotBeDecoded(t *testing.T) {
	w, leader, late := withLateFollower(t, 5000)
	before, applied := late.core.SnapshotIndex(), late.machine.Applied()
	late.raft.RefuseSnapshots(errNoRoom)
	w.net.Heal()
	var at *raft.Transfer
	w.until("refusal", func() bool {
		at = leader.transferTo(late)
		return at != nil && at.Error != ""
	})
	if !strings.Contains(at.Error, errNoRoom.Error()) {
		t.Errorf("the leader says %q", at.Error)
	}
	w.advance(5 * electionTime)
	if !late.up() || late.core.SnapshotIndex() != before || late.machine.Applied() != applied {
		t.Errorf("with a snapshot that it cannot decode it is up: %t, has the snapshot at %d and applied %d; before %d and %d",
			late.up(), late.core.SnapshotIndex(), late.machine.Applied(), before, applied)
	}
	late.crash("crash")
	w.until("a restart", late.up)
	if late.core.SnapshotIndex() != before {
		t.Errorf("after a restart it has the snapshot at %d, want %d", late.core.SnapshotIndex(), before)
	}
	w.caughtUp(late) // the one that was started again can decode it
}

// TestEntriesStayForATransfer: a follower that has got a snapshot needs no other, although
// the leader has taken many since.
func TestEntriesStayForATransfer(t *testing.T) {
	w, leader, late := withLateFollower(t, 6000)
	leader.raft.SetPartBytes(1)
	restored := w.counts["restore"]
	w.net.Heal()
	at := w.underWay(leader, late)
	newer := 0
	for number := uint64(1000); leader.transferTo(late) != nil; number++ {
		leader.propose(number)
		leader.raft.TrySnapshot()
		w.step()
		if leader.core.SnapshotIndex() > at.Index {
			newer++
		}
	}
	w.until("node that has caught up", func() bool { return late.machine.Applied() == w.newest })
	if newer < 10 {
		t.Errorf("the leader had newer snapshots for %d ms, want 10", newer)
	}
	if n := w.counts["restore"] - restored; n != 1 {
		t.Errorf("it took %d snapshots, want 1", n)
	}
}

// TestALeaderOfALaterTerm sends again what its member has decoded, and did not take: the
// leader was none for a moment.
func TestALeaderOfALaterTerm(t *testing.T) {
	w, leader, late := withLateFollower(t, 7000)
	third := w.others(leader)[1]
	third.crash("crash")
	third.restart = 0
	term, _ := leader.core.Leads()
	decodes := 0
	late.raft.BeforeDecode(func() {
		for decodes++; decodes == 1 && late.running.wait(w.now+1); {
			if again, leads := leader.core.Leads(); leads && again > term && leader.transferTo(late) != nil {
				return
			}
		}
	})
	w.net.Heal()
	w.until("whole snapshot", func() bool { return decodes == 1 })
	w.net.Isolate(leader.number)
	w.until("end of the term", func() bool { return w.leader() == nil })
	w.net.Heal()
	w.until("leader in another term", func() bool { return w.leader() == leader })
	w.caughtUp(late)
	if decodes < 2 {
		t.Error("the first snapshot was taken: the test shows nothing")
	}
}

// TestASnapshotOfANewLeader is sent, although its snapshotter was busy and has not heard yet
// that the node leads.
func TestASnapshotOfANewLeader(t *testing.T) {
	w, leader, late := withLateFollower(t, 8000)
	next := w.others(leader)[1]
	w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 1})
	w.net.Heal()
	leader.crash("crash")
	leader.restart = 0
	next.raft.MarkSnapshotterBusy() // it would be told of ticks
	next.snapshotter.until = w.now + 1000*electionTime
	w.until("snapshot to be sent", next.raft.HasSnapshotToSend)
	next.snapshotter.until = w.now
	w.caughtUp(late)
}

// TestASnapshotAfterALongPeace goes on after a moment without the network: that the snapshotter
// which takes it had nothing to do for long does not count.
func TestASnapshotAfterALongPeace(t *testing.T) {
	w, _, late := withLateFollower(t, 9000)
	w.advance(100 * electionTime)
	before := late.bodies
	w.net.Heal()
	w.until("first part", func() bool { return late.bodies > before })
	w.net.Isolate(late.number)
	w.advance(2 * tickTime)
	w.net.Heal()
	w.caughtUp(late)
	if n := late.bodies - before; n != 1 {
		t.Errorf("the snapshot was begun %d times, want once", n)
	}
}
