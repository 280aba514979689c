package raft_test

import (
	"errors"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// withForwarding returns a calm world with a follower that forwards proposals.
func withForwarding(t *testing.T, seed uint64) (w *world, follower, leader *node) {
	t.Helper()
	for ; ; seed++ {
		w = calmWorld(t, seed)
		leader = w.leader()
		w.appended(leader, 1)
		for _, n := range w.others(leader) {
			r := n.propose(2)
			w.until("answer", func() bool { return r.done })
			if r.Err == nil {
				return w, n, leader
			}
		}
	}
}

// lose loses the messages that a node sends to another in the next millisecond.
func (w *world) lose(from, to *node) {
	w.net.Cut(from.number, to.number, true)
	w.step()
	w.net.Cut(from.number, to.number, false)
}

// TestALostProposalOnABusyFollower: a lost proposal is proposed again, even while the follower
// receives new proposals all the time.
func TestALostProposalOnABusyFollower(t *testing.T) {
	w, n, leader := withForwarding(t, 20)
	lost := n.propose(3)
	w.lose(n, leader)
	for number := uint64(4); number < 34 && !lost.done; number++ {
		n.propose(number)
		w.advance(5 * tickTime)
	}
	if !lost.done || lost.Err != nil {
		t.Errorf("the update must be answered within 15 election timeouts, got %t, %v", lost.done, lost.Err)
	}
}

// TestALostUpdateOfAClient: a lost update in the session of a client is proposed again.
func TestALostUpdateOfAClient(t *testing.T) {
	w, n, leader := withForwarding(t, 30)
	session := new(reply)
	n.raft.Do(func(c *raft.Core) {
		if err := c.OpenSession("client", 77, session); err != nil {
			t.Error(err)
		}
	})
	w.until("session", func() bool { return session.done })
	var all [30]reply
	for i := range all {
		data, _ := appendCodec.Append(nil, &appendTo{0, uint64(3 + i), -1})
		n.raft.Do(func(c *raft.Core) {
			if err := c.ProposeAs(session.Client, uint64(1+i), 1, data, &all[i]); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			w.lose(n, leader)
		}
		w.advance(5 * tickTime)
	}
	if lost := &all[0]; !lost.done || lost.Err != nil {
		t.Errorf("the update must be answered within 15 election timeouts, got %t, %v", lost.done, lost.Err)
	}
}

// TestALostReadIsAskedAgain: a follower asks the leader again if the question of a read was lost.
func TestALostReadIsAskedAgain(t *testing.T) {
	w, n, leader := withForwarding(t, 35)
	read := new(reply)
	n.raft.PutRead(read, false)
	w.lose(n, leader)
	w.until("answer", func() bool { return read.done })
	if read.Err != nil {
		t.Error(read.Err)
	}
}

// TestAnAnswerWithinASnapshot: if a follower receives its update as part of a snapshot, it asks for
// the answer of the update at once.
func TestAnAnswerWithinASnapshot(t *testing.T) {
	tried := 0
	for seed := uint64(200); tried < speed.Pick(t, 1, 2, 20); seed++ {
		w, n, leader := withForwarding(t, seed)
		number := uint64(3)
		r := n.propose(number)
		w.advance(7) // the leader has received it
		w.net.Cut(leader.number, n.number, true)
		for range 40 {
			number++
			leader.propose(number)
			w.advance(1)
		}
		leader.raft.TrySnapshot()
		w.advance(10)
		w.net.Cut(leader.number, n.number, false)
		restored := w.counts["restore"]
		began := w.now
		for w.counts["restore"] == restored && w.now < began+2*tickTime {
			w.step()
		}
		if r.done || w.counts["restore"] == restored || w.leader() != leader {
			continue // the follower did not need the snapshot
		}
		tried++
		w.advance(3 * tickTime)
		if !r.done || r.Err != nil {
			t.Errorf("seed %d: the update must be answered three ticks after the snapshot, got %t, %v", seed, r.done, r.Err)
		}
	}
}

// change starts changes at a leader, and does not wait.
func (n *node) change(changes ...raft.Change) *reply {
	r := new(reply)
	n.changeMembers(changes, r)
	return r
}

// TestAChangeBehindAnother: a change during an abandoned change is refused; it does not wait
// forever.
func TestAChangeBehindAnother(t *testing.T) {
	w := calmWorld(t, 40)
	leader := w.leader()
	w.appended(leader, 1)
	first := leader.change(raft.Change{Kind: raft.AddLearner, Name: "n4", ID: 44})
	leader.raft.Do(func(c *raft.Core) { c.AbandonChange(first) })
	second := leader.change(raft.Change{Kind: raft.AddLearner, Name: "n5", ID: 55})
	w.until("answer", func() bool { return second.done })
	if !errors.Is(second.Err, raft.ErrMembers) || !fsm.OutcomeKnown(second.Err) {
		t.Errorf("the second change must be refused, got %v", second.Err)
	}
	w.advance(electionTime)
	third := leader.change(raft.Change{Kind: raft.AddLearner, Name: "n5", ID: 55})
	w.until("answer", func() bool { return third.done })
	if third.Err != nil {
		t.Errorf("a later change must succeed, got %v", third.Err)
	}
}

// TestMostMembersAreReplaced: one change can replace most members, including the leader. The leaving
// members are needed until all nodes have the change.
func TestMostMembersAreReplaced(t *testing.T) {
	w := calmWorld(t, 41)
	leader := w.leader()
	w.appended(leader, 1)
	others := w.others(leader)
	for _, n := range w.nodes[len(w.nodes)-2:] {
		n.join()
	}
	r := leader.change(
		raft.Change{Kind: raft.AddVoter, Name: "n4"}, raft.Change{Kind: raft.AddVoter, Name: "n5"},
		raft.Change{Kind: raft.Remove, Name: leader.name}, raft.Change{Kind: raft.Remove, Name: others[0].name},
	)
	w.until("answer", func() bool { return r.done })
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	w.until("leader of the new members", func() bool {
		l := w.leader()
		return l != nil && l != leader && l != others[0]
	})
	w.appended(w.leader(), 2)
	w.until("stop of the old leader", func() bool { return leader.removed })
}

// TestTheLeaderOfTwoIsRemoved: the leader of two nodes is removed, and its messages about this to
// the other node are lost. The other node must still become the leader.
func TestTheLeaderOfTwoIsRemoved(t *testing.T) {
	w := calmWorld(t, 42)
	leader := w.leader()
	w.appended(leader, 1)
	others := w.others(leader)
	r := leader.change(raft.Change{Kind: raft.Remove, Name: others[0].name})
	w.until("answer", func() bool { return r.done })
	other := others[1]
	w.until("all applied", func() bool {
		return other.machine.Applied() >= 1 && other.core.Status().Applied == leader.core.Status().Applied
	})
	last := other.core.Status().Last
	r = leader.change(raft.Change{Kind: raft.Remove, Name: leader.name})
	w.until("entry at the other", func() bool { return other.core.Status().Last > last })
	w.net.Cut(leader.number, other.number, true)
	w.until("answer", func() bool { return r.done })
	w.advance(tickTime)
	w.net.Cut(leader.number, other.number, false)
	w.until("another leader", func() bool { return w.leader() == other })
	w.appended(other, 2)
}

// TestAPeerProposesMembers: a leader refuses a change of the members that a peer proposes. Only the
// leader itself proposes such changes.
func TestAPeerProposesMembers(t *testing.T) {
	w := calmWorld(t, 43)
	leader := w.leader()
	peer := w.others(leader)[0].id
	err := leader.core.Step(peer, &pb.Message{
		Type: pb.MsgProp.Enum(), From: new(peer), To: new(leader.id),
		Entries: []*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Data: []byte("garbage")}},
	})
	if !errors.Is(err, raft.ErrMessage) {
		t.Errorf("the proposal must be refused, got %v", err)
	}
}

// TestAClientInSessionsOfNodes: a client proposes updates in the sessions of others, with the highest
// possible sequence number. The nodes then continue in new sessions.
func TestAClientInSessionsOfNodes(t *testing.T) {
	w, n, leader := withForwarding(t, 50)
	number := uint64(300)
	for index := range w.newest + 1 {
		leader.raft.Do(func(c *raft.Core) {
			if err := c.ProposeAs(index<<20, 1<<62, 1<<62, []byte{0, 100, 0}, new(reply)); err != nil && !errors.Is(err, fsm.ErrSessionExpired) {
				t.Error(err)
			}
		})
	}
	w.step()
	w.until("answers", func() bool { return leader.core.Status().Pending == 0 })
	for _, node := range []*node{n, leader, n, leader} {
		number++
		w.appended(node, number)
	}
}

// TestAReadNobodyWaitsFor: an abandoned read is not answered, and other reads are.
func TestAReadNobodyWaitsFor(t *testing.T) {
	w := calmWorld(t, 60)
	n := w.leader()
	w.net.Isolate(n.number)
	w.advance(10 * electionTime)
	gone, begun, stays := new(reply), new(reply), new(reply)
	for _, r := range []*reply{gone, begun, stays} {
		n.raft.PutRead(r, false)
	}
	w.step()
	n.raft.Do(func(c *raft.Core) { c.AbandonRead(gone) })
	w.net.Heal()
	w.until("a question to the majority", func() bool { return n.core.Status().Leader != "" })
	n.raft.Do(func(c *raft.Core) { c.AbandonRead(begun) })
	w.until("answer", func() bool { return stays.done })
	if stays.Err != nil || gone.done || begun.done {
		t.Errorf("only the third read must be answered, got %v; the abandoned reads are answered: %t, %t", stays.Err, gone.done, begun.done)
	}
}
