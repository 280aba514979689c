package raft_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// changedBy starts changes at a leader and waits for the answer.
func (w *world) changedBy(leader *node, changes ...raft.Change) error {
	w.t.Helper()
	r := leader.change(changes...)
	w.until("change", func() bool { return r.done })
	return r.Err
}

// active reports whether a leader shows a member as active.
func (n *node) active(member *node) bool {
	return slices.ContainsFunc(n.core.Status().Members, func(m raft.MemberStatus) bool { return m.ID == member.id && m.Active })
}

// withLearner returns a calm world whose leader has just added a learner.
func withLearner(t *testing.T) (w *world, leader, learner *node) {
	t.Helper()
	w = calmWorld(t, 81)
	leader, learner = w.leader(), w.nodes[3]
	learner.join()
	if err := w.changedBy(leader, raft.Change{Kind: raft.AddLearner, Name: learner.name}); err != nil {
		t.Fatal(err)
	}
	return w, leader, learner
}

// checkRefused checks that err refuses a change of the members and contains the parts.
func checkRefused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, raft.ErrMembers) || !fsm.OutcomeKnown(err) {
		t.Errorf("the change must be refused, got %v", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error must contain %q, got: %v", part, err)
		}
	}
}

// TestAPromotionThatWouldBlock: the leader refuses to promote a learner that is down or lacks many
// entries, because the group might wait for it.
func TestAPromotionThatWouldBlock(t *testing.T) {
	w, leader, spare := withLearner(t)
	w.until("log at the learner", func() bool { return len(spare.core.Status().Members) == 4 })
	spare.crash("crash")
	spare.restart = 0
	w.advance(2 * electionTime)
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.Promote, Name: spare.name}), "no answer comes from "+spare.name, "--force")

	var last *reply
	for i := range uint64(1100) { // more entries than a promoted learner may lack
		last = leader.propose(3 + i)
		w.step()
	}
	w.until("answer", func() bool { return last.done })
	spare.start()
	for r := (*reply)(nil); ; w.step() { // until the learner is reachable but not up to date
		if r == nil || r.done && strings.Contains(r.Err.Error(), "no answer comes from") {
			r = leader.change(raft.Change{Kind: raft.Promote, Name: spare.name})
		}
		if r.done && !strings.Contains(fmt.Sprint(r.Err), "no answer comes from") {
			checkRefused(t, r.Err, spare.name+" lacks ", "--force")
			break
		}
	}
	w.until("log at the learner", func() bool { return spare.machine.Applied() == leader.machine.Applied() })
	if err := w.changedBy(leader, raft.Change{Kind: raft.Promote, Name: spare.name}); err != nil {
		t.Error(err)
	}
}

// TestAPromotionWithoutTheState: the leader refuses to promote a running learner that does not have
// the snapshot, even if only few entries follow the snapshot.
func TestAPromotionWithoutTheState(t *testing.T) {
	w, leader, spare := withLearner(t)
	waited := false
	w.until("the promotion", func() bool {
		err := w.changedBy(leader, raft.Change{Kind: raft.Promote, Name: spare.name})
		if err != nil {
			checkRefused(t, err, spare.name, "--force")
			waited = waited || strings.Contains(err.Error(), "needs a snapshot")
		} else if len(spare.core.Status().Members) < 4 {
			t.Error("a learner without the state must not become a voter")
		}
		return err == nil
	})
	if !waited {
		t.Error("the promotion must be refused at least once because of the snapshot")
	}
}

// TestAPromotionOfAnEmptiedDisk: the leader refuses to promote a learner that was up to date and
// then lost its disk. It notices this because it requests an introduction before the promotion.
func TestAPromotionOfAnEmptiedDisk(t *testing.T) {
	w, leader, spare := withLearner(t)
	w.until("log at the learner", func() bool {
		return slices.ContainsFunc(leader.core.Status().Members, func(m raft.MemberStatus) bool {
			return m.Name == spare.name && m.Match == leader.core.Status().Last
		})
	})
	w.advance(electionTime / 2)
	spare.crash("crash")
	spare.disk = newMemoryDisk(7)
	spare.start()
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.Promote, Name: spare.name}), "its disk was emptied or exchanged", "topoctl raft remove "+spare.name)
	w.appended(leader, 1)
}

// TestATransferToANodeThatIsDown: a transfer to a node that is down is refused at once.
func TestATransferToANodeThatIsDown(t *testing.T) {
	w := calmWorld(t, 82)
	leader := w.leader()
	down := w.others(leader)[0]
	down.crash("crash")
	down.restart = 0
	w.advance(2 * electionTime)
	leader.raft.Do(func(c *raft.Core) {
		checkRefused(t, c.TransferLeader(down.id), "no answer comes from "+down.name, "start it first")
	})
	w.step()
	w.appended(leader, 1)
}

// TestARemovalThatWouldBlock: with one of three members down, the leader refuses to remove a running
// member. The member that is down can be removed.
func TestARemovalThatWouldBlock(t *testing.T) {
	w := calmWorld(t, 82)
	leader := w.leader()
	down, runs := w.others(leader)[0], w.others(leader)[1]
	down.crash("crash")
	down.restart = 0
	w.advance(2 * electionTime)
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.Remove, Name: runs.name}), "after the change 2 of 2 voters would be needed", "no answer comes from "+down.name)
	w.appended(leader, 1)
	if err := w.changedBy(leader, raft.Change{Kind: raft.Remove, Name: down.name}); err != nil {
		t.Error(err)
	}
	w.appended(leader, 2)
}

// TestAChangeDuringATransfer: a change of the members during a failed transfer completes, even if the
// group has no other entries. The unreachable target of the transfer can then be removed.
func TestAChangeDuringATransfer(t *testing.T) {
	w := calmWorld(t, 401)
	leader := w.leader()
	w.appended(leader, 1)
	others := w.others(leader)
	w.net.Isolate(others[0].number)
	r := leader.change(
		raft.Change{Kind: raft.Readdress, Name: others[0].name, Address: "there"},
		raft.Change{Kind: raft.Readdress, Name: others[1].name, Address: "elsewhere"})
	leader.raft.Do(func(c *raft.Core) {
		if err := c.TransferLeader(others[0].id); err != nil {
			t.Error(err)
		}
	})
	w.until("change", func() bool { return r.done })
	if !leader.core.ChangesAhead() {
		t.Fatal("the test needs a change that is not complete when the transfer starts")
	}
	w.until("end of the change", func() bool { return !leader.core.ChangesAhead() })
	if err := w.changedBy(leader, raft.Change{Kind: raft.Remove, Name: others[0].name}); err != nil {
		t.Error(err)
	}
}

// TestAForcedChange: a forced change is made even if the group loses its majority.
func TestAForcedChange(t *testing.T) {
	w := calmWorld(t, 83)
	leader := w.leader()
	down, runs := w.others(leader)[0], w.others(leader)[1]
	down.crash("crash")
	down.restart = 0
	w.advance(2 * electionTime)
	if err := w.changedBy(leader, raft.Change{Kind: raft.Remove, Name: runs.name, Force: true}); err != nil {
		t.Fatal(err)
	}
	r := leader.propose(1)
	w.advance(20 * electionTime)
	if r.done && r.Err == nil {
		t.Error("the group must not commit without a majority")
	}
	down.start()
	w.appended(w.otherLeader(runs), 2)
}

// TestANodeThatDoesNotRun: a change that adds a node waits until the node runs.
func TestANodeThatDoesNotRun(t *testing.T) {
	w := calmWorld(t, 84)
	leader := w.leader()
	spare := w.nodes[3]
	r := leader.change(raft.Change{Kind: raft.AddVoter, Name: spare.name})
	w.advance(20 * electionTime)
	if r.done {
		t.Fatalf("the change must wait, got %v", r.Err)
	}
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.AddVoter, Name: w.nodes[4].name}), "another change")
	leader.raft.AbandonChange(r)
	w.step()
	r = leader.change(raft.Change{Kind: raft.AddVoter, Name: spare.name})
	w.advance(electionTime)
	spare.join()
	w.until("change", func() bool { return r.done })
	if r.Err != nil {
		t.Error(r.Err)
	}
	w.appended(leader, 1)
}

// TestANodeWithALog: a node that was a member before, or belongs to another group, is not added.
func TestANodeWithALog(t *testing.T) {
	w := calmWorld(t, 85)
	leader := w.leader()
	w.until("answers of all members", func() bool { return leader.active(w.others(leader)[0]) && leader.active(w.others(leader)[1]) })
	gone := w.others(leader)[0]
	if err := w.changedBy(leader, raft.Change{Kind: raft.Remove, Name: gone.name}); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.AddLearner, Name: gone.name}), "was a member of this group before", "empty its folder")
	w.until("stop of the removed node", func() bool { return gone.removed })

	w.ruling, w.log = 0, map[uint64]entry{} // allow a second group, with entries of its own
	other := w.nodes[3]
	other.member, other.peers = true, map[string]string{other.name: ""}
	other.start()
	w.until("a second group", func() bool { return other.raft.GroupID() != 0 })
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.AddLearner, Name: other.name}), "belongs to another group", fmt.Sprintf("%016x", other.raft.GroupID()))
}

// TestARemovalIsDurable: as soon as the removal of a member is acknowledged, the disk of this
// member may be lost. After a power failure the leader must still know that it does not need the
// vote of this member.
func TestARemovalIsDurable(t *testing.T) {
	for seed := range uint64(10) {
		w := calmWorld(t, 8500+seed)
		leader := w.leader()
		w.until("answers of all members", func() bool { return leader.active(w.others(leader)[0]) && leader.active(w.others(leader)[1]) })
		removed := w.others(leader)
		for _, n := range removed {
			if err := w.changedBy(leader, raft.Change{Kind: raft.Remove, Name: n.name}); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range append(removed, leader) {
			n.crash("crash")
			n.restart = 0
		}
		leader.restart = w.now + 1
		w.until("a leader without others", func() bool { return w.leader() == leader })
		w.appended(leader, 1)
	}
}

// TestAChangeIsAcknowledgedWhenDurable: a change of the members is not acknowledged before its
// commit is durable on the leader.
func TestAChangeIsAcknowledgedWhenDurable(t *testing.T) {
	w := calmWorld(t, 8600)
	leader := w.leader()
	w.until("answers of all members", func() bool { return leader.active(w.others(leader)[0]) && leader.active(w.others(leader)[1]) })
	r := leader.change(raft.Change{Kind: raft.Remove, Name: w.others(leader)[0].name})
	commits := 0
	leader.onSave = func(entries int, sync bool) {
		if sync && entries == 0 {
			commits++
			if r.done {
				t.Error("the change is acknowledged before its commit is durable")
			}
		}
	}
	w.until("change", func() bool { return r.done })
	if r.Err != nil || commits != 1 {
		t.Errorf("%v, %d synced commits", r.Err, commits)
	}
}

// TestAChangeBehindALargeUpdateIsDurable: a leader learns at once that an update and a change are
// committed. The update is so large that the engine hands over the change later. The change is
// acknowledged after its commit is durable all the same.
func TestAChangeBehindALargeUpdateIsDurable(t *testing.T) {
	w := calmWorld(t, 8600)
	leader := w.leader()
	w.until("answers of all members", func() bool { return leader.active(w.others(leader)[0]) && leader.active(w.others(leader)[1]) })
	w.appended(leader, 1)
	w.cutLeader(true)
	leader.raft.PutProposal(raft.Update, make([]byte, 5<<20), new(reply))
	w.advance(tickTime)
	change := leader.change(raft.Change{Kind: raft.Remove, Name: w.others(leader)[0].name})
	w.advance(3 * tickTime)
	durable := false
	leader.onSave = func(entries int, sync bool) { durable = durable || sync && entries == 0 }
	w.net.Heal()
	w.until("change", func() bool { return change.done })
	if change.Err != nil || !durable {
		t.Errorf("the change is acknowledged with %v, and its commit is durable: %v", change.Err, durable)
	}
}

// TestNamesAreUsedAgain: one name is added and removed more often than a group may have members.
func TestNamesAreUsedAgain(t *testing.T) {
	w := calmWorld(t, 86)
	leader := w.leader()
	spare := w.nodes[3]
	for i := range uint64(100) {
		spare.disk, spare.removed = newMemoryDisk(i), false
		spare.join()
		for _, kind := range []raft.ChangeKind{raft.AddVoter, raft.Remove} {
			if err := w.changedBy(leader, raft.Change{Kind: kind, Name: spare.name}); err != nil {
				t.Fatalf("round %d, change %d: %v", i, kind, err)
			}
		}
		w.until("stop of the removed node", func() bool { return spare.removed })
	}
	w.appended(leader, 1)
	if members := leader.core.Status().Members; len(members) != 3 {
		t.Errorf("%d members: %v", len(members), members)
	}
}

// TestTooManyMembers: a change beyond the maximal number of members is refused.
func TestTooManyMembers(t *testing.T) {
	w := calmWorld(t, 87)
	leader := w.leader()
	var list []raft.Change
	for i := range 61 {
		list = append(list, raft.Change{Kind: raft.AddLearner, Name: fmt.Sprintf("m%d", i), ID: uint64(1000 + i)})
	}
	if err := w.changedBy(leader, list...); err != nil {
		t.Fatal(err)
	}
	w.advance(10 * electionTime)
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.AddLearner, Name: "one more", ID: 999}), "at most 64 members")
}

// TestAnotherName: a renamed member continues under its old name until it restarts under the new
// one.
func TestAnotherName(t *testing.T) {
	w := calmWorld(t, 88)
	for _, renamed := range []*node{w.others(w.leader())[0], w.leader()} {
		leader, was := w.leader(), renamed.name
		checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.Rename, Name: was, To: w.others(renamed)[0].name}), "is a member")
		if err := w.changedBy(leader, raft.Change{Kind: raft.Rename, Name: was, To: was + "x"}); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.Rename, Name: was + "x", To: was + "y"}), "has not sent a message under its new name yet")
		checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.AddLearner, Name: was}), was+" is still the member "+was+"x", "Start it as "+was+"x", "Keep the folder")
		w.until("all know it", func() bool {
			for _, n := range w.nodes[:3] {
				if !strings.Contains(fmt.Sprint(n.core.Status().Members), was+"x") {
					return false
				}
			}
			return true
		})
		w.appended(leader, 1)
		w.advance(10 * electionTime)
		if now := w.leader(); now != leader {
			t.Errorf("%s must still lead, got %s", leader.name, now.name)
		}
		renamed.crash("crash")
		renamed.name, renamed.restart = was+"x", 0
		renamed.start()
		w.until("a leader", func() bool { return w.leader() != nil })
		w.appended(w.leader(), 2)
		w.until("all applied", func() bool { return renamed.machine.Applied() == w.newest })
	}
}

// TestTheNameOfAnother: a node does not start with the disk of another member.
func TestTheNameOfAnother(t *testing.T) {
	w := calmWorld(t, 89)
	n := w.others(w.leader())[0]
	n.crash("crash")
	n.restart = 0
	was := n.name
	n.name = "n9"
	n.start()
	if w.failure == nil || !strings.Contains(w.failure.Error(), fmt.Sprintf("this is the disk of node %q of the group, not of %q; set TOPOGEN_NODE", was, "n9")) {
		t.Errorf("the node must not start, got %v", w.failure)
	}
}

// TestAddressesOfMembers: two members cannot have the same address, but one change can swap addresses.
func TestAddressesOfMembers(t *testing.T) {
	w := calmWorld(t, 90)
	leader := w.leader()
	other := w.others(leader)[0]
	if err := w.changedBy(leader, raft.Change{Kind: raft.Readdress, Name: other.name, Address: "10.0.0.1:7"}); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, w.changedBy(leader, raft.Change{Kind: raft.Readdress, Name: leader.name, Address: "10.0.0.1:7"}), fmt.Sprintf("10.0.0.1:7 is the address of %q", other.name))
	if err := w.changedBy(leader,
		raft.Change{Kind: raft.Readdress, Name: leader.name, Address: "10.0.0.1:7"},
		raft.Change{Kind: raft.Readdress, Name: other.name, Address: "10.0.0.2:7"},
	); err != nil {
		t.Errorf("one change must be able to pass an address to another member: %v", err)
	}
}

// TestRemoveWhileAMemberHearsNothing: a member whose messages arrive, but that receives none, does not count for
// the majority after a change. Its pre-votes are not answers to the leader.
func TestRemoveWhileAMemberHearsNothing(t *testing.T) {
	w := calmWorld(t, 6)
	leader := w.leader()
	w.appended(leader, 1)
	deaf, other := w.others(leader)[0], w.others(leader)[1]
	w.net.Cut(leader.number, deaf.number, true)
	w.net.Cut(other.number, deaf.number, true)
	w.advance(2 * electionTime)
	w.until("a pre-vote", func() bool { return deaf.core.Status().Role == "pre-candidate" })
	w.advance(electionTime / 4)
	if leader.active(deaf) || !leader.active(other) {
		t.Errorf("only the member that answers must be active, got %t for the other one", leader.active(deaf))
	}
	var r *reply
	for range 3 * electionTime / tickTime { // the pre-votes arrive at any time
		r = leader.change(raft.Change{Kind: raft.Remove, Name: other.name})
		w.until("answer", func() bool { return r.done })
		if !errors.Is(r.Err, raft.ErrMembers) || !strings.Contains(r.Err.Error(), "from "+deaf.name) {
			t.Fatalf("a removal after which no majority answers must be refused, got %v", r.Err)
		}
		w.advance(tickTime)
	}
	leader.raft.Do(func(c *raft.Core) {
		if err := c.TransferLeader(deaf.id); !errors.Is(err, raft.ErrMembers) {
			t.Errorf("a transfer to a member that does not answer must be refused, got %v", err)
		}
	})
	w.net.Heal()
	w.until("an answer", func() bool { return leader.active(deaf) })
	r = leader.change(raft.Change{Kind: raft.Remove, Name: other.name})
	w.until("the removal", func() bool { return r.done })
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// TestAnswersOfEarlierTerms: a leader that gets the leadership back does not count the answers to what it sent
// when it led before, and not the answer to a late message of that time.
func TestAnswersOfEarlierTerms(t *testing.T) {
	w := calmWorld(t, 6)
	leader := w.leader()
	deaf, other := w.others(leader)[0], w.others(leader)[1]
	w.until("answers of all members", func() bool { return leader.active(deaf) && leader.active(other) })
	w.net.Isolate(deaf.number)
	for _, to := range []*node{other, leader} {
		w.until("a leader to ask", func() bool { return to.core.Status().Leader != "" })
		to.raft.Do(func(c *raft.Core) {
			if err := c.TransferLeader(to.id); err != nil {
				t.Error(err)
			}
		})
		w.until("leader "+to.name, func() bool { return w.leader() == to })
	}
	w.until("an answer", func() bool { return leader.active(other) })
	if leader.active(deaf) {
		t.Error("an answer of an earlier term must not count")
	}
	term, _ := leader.core.Leads()
	leader.raft.Do(func(c *raft.Core) { // the answer to a message of an earlier term
		if err := c.Step(deaf.id, &pb.Message{Type: pb.MsgAppResp.Enum(), From: new(deaf.id), To: new(leader.id), Term: new(term)}); err != nil {
			t.Error(err)
		}
	})
	w.advance(1)
	if leader.active(deaf) {
		t.Error("the answer to a message of an earlier term must not count")
	}
}
