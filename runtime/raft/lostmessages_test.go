package raft_test

import (
	"errors"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// forwarding is a calm world, and a follower in it that passes proposals on.
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

// lose loses what a node sends to another in the next moment.
func (w *world) lose(from, to *node) {
	w.net.Cut(from.number, to.number, true)
	w.step()
	w.net.Cut(from.number, to.number, false)
}

// TestALostProposalOnABusyFollower is proposed again, although others are proposed
// all the time.
func TestALostProposalOnABusyFollower(t *testing.T) {
	w, n, leader := withForwarding(t, 20)
	lost := n.propose(3)
	w.lose(n, leader)
	for number := uint64(4); number < 34 && !lost.done; number++ {
		n.propose(number)
		w.advance(5 * tickTime)
	}
	if !lost.done || lost.Err != nil {
		t.Errorf("after 15 election timeouts it is answered: %t, with %v", lost.done, lost.Err)
	}
}

// TestALostUpdateOfAClient is the same for the sessions of clients.
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
		t.Errorf("after 15 election timeouts it is answered: %t, with %v", lost.done, lost.Err)
	}
}

// TestALostReadIsAskedAgain.
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

// TestAnAnswerWithinASnapshot: a follower whose update was applied in what it gets as a
// snapshot asks for the answer at once.
func TestAnAnswerWithinASnapshot(t *testing.T) {
	tried := 0
	for seed := uint64(200); tried < 3; seed++ {
		w, n, leader := withForwarding(t, seed)
		number := uint64(3)
		r := n.propose(number)
		w.advance(7) // it has come to the leader
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
			continue // the entries were enough
		}
		tried++
		w.advance(3 * tickTime)
		if !r.done || r.Err != nil {
			t.Errorf("seed %d: three ticks after the snapshot it is answered: %t, with %v", seed, r.done, r.Err)
		}
	}
}

// change asks a leader for changes, and does not wait.
func (n *node) change(changes ...raft.Change) *reply {
	r := new(reply)
	n.changeMembers(changes, r)
	return r
}

// TestAChangeBehindAnother which nobody waits for any more is refused, and does not
// wait for ever.
func TestAChangeBehindAnother(t *testing.T) {
	w := calmWorld(t, 40)
	leader := w.leader()
	w.appended(leader, 1)
	first := leader.change(raft.Change{Kind: raft.AddLearner, Name: "n4", ID: 44})
	leader.raft.Do(func(c *raft.Core) { c.AbandonChange(first) })
	second := leader.change(raft.Change{Kind: raft.AddLearner, Name: "n5", ID: 55})
	w.until("answer", func() bool { return second.done })
	if !errors.Is(second.Err, raft.ErrMembers) || !fsm.OutcomeKnown(second.Err) {
		t.Errorf("it ends with %v", second.Err)
	}
	w.advance(electionTime)
	third := leader.change(raft.Change{Kind: raft.AddLearner, Name: "n5", ID: 55})
	w.until("answer", func() bool { return third.done })
	if third.Err != nil {
		t.Errorf("later it ends with %v", third.Err)
	}
}

// TestMostMembersAreReplaced at once, the leader among them: those who leave are
// needed until all know.
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
	w.until("end of those who left", func() bool { return leader.removed })
}

// TestTheLeaderOfTwoIsRemoved and what it tells the other of that is lost.
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

// TestAPeerProposesMembers which no node does: members are changed by the leader.
func TestAPeerProposesMembers(t *testing.T) {
	w := calmWorld(t, 43)
	leader := w.leader()
	peer := w.others(leader)[0].id
	err := leader.core.Step(peer, &pb.Message{
		Type: pb.MsgProp.Enum(), From: new(peer), To: new(leader.id),
		Entries: []*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Data: []byte("garbage")}},
	})
	if !errors.Is(err, raft.ErrMessage) {
		t.Errorf("it is taken: %v", err)
	}
}

// TestAClientInSessionsOfNodes asks for updates in sessions that others have opened,
// with the highest number that there is. Those of nodes go on in another.
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

// TestAReadNobodyWaitsFor is forgotten.
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
		t.Errorf("%v; those that were given up are answered: %t, %t", stays.Err, gone.done, begun.done)
	}
}
