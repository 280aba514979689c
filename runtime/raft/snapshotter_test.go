package raft_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// withLateFollower returns a calm world with an isolated follower that needs a snapshot of many
// parts to catch up.
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

// transferTo returns the status of the snapshot that a leader sends to a member; nil: none.
func (n *node) transferTo(to *node) *raft.Transfer {
	for _, m := range n.raft.StatusNow().Members {
		if m.ID == to.id {
			return m.Transfer
		}
	}
	return nil
}

// underWay runs the world until the receiver has a part of a snapshot.
func (w *world) underWay(leader, to *node) *raft.Transfer {
	w.t.Helper()
	var at *raft.Transfer
	w.until("part of a snapshot", func() bool {
		at = leader.transferTo(to)
		return at != nil && at.Came > 0
	})
	if at.Came >= at.Size {
		w.t.Fatalf("the test needs an incomplete transfer, got %+v", at)
	}
	return at
}

// caughtUp runs the world until a node has caught up with its leader by a snapshot.
func (w *world) caughtUp(n *node) {
	w.t.Helper()
	before := w.counts["restore"]
	w.until("node that has caught up", func() bool {
		l := w.leader()
		return l != nil && n.raft != nil && n.machine.Applied() == l.machine.Applied() && n.machine.Applied() >= w.newest
	})
	if w.counts["restore"] == before {
		w.t.Error("the node must catch up by a snapshot")
	}
}

// TestSnapshotsOverABadNetwork: a snapshot arrives although its parts may be lost, duplicated and
// reordered.
func TestSnapshotsOverABadNetwork(t *testing.T) {
	for seed := range uint64(5) {
		w, _, late := withLateFollower(t, 100*seed)
		w.net.SetFaults(transport.Faults{Loss: 0.2, Duplicate: 0.2, DelayMin: 1, DelayMax: 2 * tickTime})
		w.net.Heal()
		w.caughtUp(late)
	}
}

// TestAReceiverThatStartsAgain: a receiver that restarts during a transfer gets the snapshot from its
// beginning, and keeps nothing from the first attempt.
func TestAReceiverThatStartsAgain(t *testing.T) {
	w, leader, late := withLateFollower(t, 1000)
	w.net.Heal()
	w.underWay(leader, late)
	late.crash("crash")
	w.until("a restart", late.up)
	if at := late.core.SnapshotIndex(); at > 1 {
		t.Errorf("an incomplete snapshot must not be kept after the restart, got one at %d", at)
	}
	w.caughtUp(late)
}

// TestASenderThatStartsAgain: if the sender restarts or loses the leadership, the next leader sends
// a snapshot.
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

// TestAStoppedTransferGoesOn: after a lost connection a transfer continues where it was.
func TestAStoppedTransferGoesOn(t *testing.T) {
	w, leader, late := withLateFollower(t, 4000)
	w.net.Heal()
	at := w.underWay(leader, late)
	w.net.Isolate(late.number)
	w.advance(electionTime / 2)
	w.net.Heal()
	w.step()
	if again := leader.transferTo(late); again == nil || again.Came < at.Came || again.Index != at.Index {
		t.Errorf("the transfer must continue from %+v, got %+v", at, again)
	}
	w.caughtUp(late)
}

var errNoRoom = errors.New("no room for that")

// TestASnapshotThatCannotBeDecoded: a snapshot that cannot be decoded does not replace the existing
// one. The member continues with its own snapshot. The leader reports the error and tries again.
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
		t.Errorf("the leader must report %q, got %q", errNoRoom, at.Error)
	}
	w.advance(5 * electionTime)
	if !late.up() || late.core.SnapshotIndex() != before || late.machine.Applied() != applied {
		t.Errorf("after a refused snapshot the node must continue: up %t, snapshot at %d, applied %d; before %d and %d",
			late.up(), late.core.SnapshotIndex(), late.machine.Applied(), before, applied)
	}
	late.crash("crash")
	w.until("a restart", late.up)
	if late.core.SnapshotIndex() != before {
		t.Errorf("after a restart the node has the snapshot at %d, want %d", late.core.SnapshotIndex(), before)
	}
	w.caughtUp(late) // RefuseSnapshots applies only until the restart
}

// TestADiskTooFullForASnapshot: if the disk of a member has no room for a snapshot, the member logs
// why it refuses the snapshot. It gets the snapshot as soon as there is room.
func TestADiskTooFullForASnapshot(t *testing.T) {
	for _, call := range []string{"create", "write", "seal"} {
		w, leader, late := withLateFollower(t, 5500)
		var log bytes.Buffer
		late.raft.LogTo(slog.NewTextHandler(&log, nil))
		late.full = call
		w.net.Heal()
		w.until("refusal", func() bool {
			at := leader.transferTo(late)
			return at != nil && strings.Contains(at.Error, errNoRoom.Error())
		})
		if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "refuses the snapshot of the leader") || !strings.Contains(text, errNoRoom.Error()) {
			t.Errorf("%s: the member must log why it refuses the snapshot, got %q", call, text)
		}
		late.full = ""
		w.caughtUp(late)
	}
}

// TestEntriesStayForATransfer: a follower needs only one snapshot, although the leader takes many
// others during the transfer, because the leader keeps the entries after the sent snapshot.
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
		t.Errorf("the leader must have newer snapshots during 10 ms, got %d", newer)
	}
	if n := w.counts["restore"] - restored; n != 1 {
		t.Errorf("the follower must receive 1 snapshot, got %d", n)
	}
}

// TestALeaderOfALaterTerm: a leader sends a snapshot again if the member has decoded it but refused
// it, because the leader had lost the leadership for a moment.
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
		t.Error("the test needs a first snapshot that the member refuses")
	}
}

// TestASnapshotOfANewLeader: a new leader sends a snapshot although its snapshotter was busy when the
// node became the leader.
func TestASnapshotOfANewLeader(t *testing.T) {
	w, leader, late := withLateFollower(t, 8000)
	next := w.others(leader)[1]
	w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 1})
	w.net.Heal()
	leader.crash("crash")
	leader.restart = 0
	next.raft.MarkSnapshotterBusy() // so that it receives ticks
	next.snapshotter.until = w.now + 1000*electionTime
	w.until("snapshot to be sent", next.raft.HasSnapshotToSend)
	next.snapshotter.until = w.now
	w.caughtUp(late)
}

// TestASnapshotAfterALongPeace: a transfer continues after a short failure of the network, even if
// the receiving snapshotter was idle for a long time before the transfer.
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
		t.Errorf("the transfer must start once, got %d times", n)
	}
}
