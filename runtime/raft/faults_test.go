package raft_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// calmWorld returns a group of three nodes with a leader, without faults and clients.
func calmWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	for ; ; seed++ {
		w := newWorldOf(t, seed, 0)
		w.noFaults = true
		if len(w.nodes) == simPeers+2 {
			w.until("a leader", func() bool { return w.leader() != nil })
			return w
		}
	}
}

// until runs the world until a condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := w.now + 1000*electionTime; !holds(); w.step() {
		if w.failure != nil {
			w.t.Fatal(w.failure)
		}
		if w.now > end {
			w.t.Fatalf("timeout while waiting for: %s%s", what, w.describe())
		}
	}
}

// advance runs the world for some milliseconds.
func (w *world) advance(time int64) {
	for end := w.now + time; w.now < end; {
		w.step()
	}
}

// leader returns the leader of the highest term.
func (w *world) leader() (leader *node) {
	var highest uint64
	for _, n := range w.nodes {
		if n.raft == nil {
			continue
		}
		if term, leads := n.core.Leads(); leads && term > highest {
			highest, leader = term, n
		}
	}
	return leader
}

// otherLeader waits until a node other than old leads.
func (w *world) otherLeader(old *node) (leader *node) {
	w.t.Helper()
	w.until("another leader", func() bool {
		leader = w.leader()
		return leader != nil && leader != old
	})
	return leader
}

// others returns the members without one node.
func (w *world) others(not *node) (list []*node) {
	for _, n := range w.nodes {
		if n != not && n.member {
			list = append(list, n)
		}
	}
	return list
}

// reply is a waiter that stores the answer.
type reply struct {
	done bool
	fsm.Applied
}

func (r *reply) Done(a fsm.Applied) { r.done, r.Applied = true, a }

// propose proposes to append a number at a node, and does not wait.
func (n *node) propose(number uint64) *reply {
	r := new(reply)
	data, _ := appendCodec.Append(nil, &appendTo{0, number, -1})
	n.raft.PutProposal(raft.Update, data, r)
	return r
}

// appended proposes to append a number at a node, and waits for the answer.
func (w *world) appended(n *node, number uint64) {
	w.t.Helper()
	r := n.propose(number)
	w.until("answer", func() bool { return r.done })
	if r.Err != nil {
		w.t.Fatal(r.Err)
	}
}

// TestCutOffForAHundredTimeouts: when a node returns that was isolated for a long time, the leader
// stays the leader in the same term.
func TestCutOffForAHundredTimeouts(t *testing.T) {
	w := calmWorld(t, 1)
	leader := w.leader()
	cut := w.others(leader)[0]
	w.net.Isolate(cut.number)
	w.appended(leader, 1)
	before, _ := leader.core.Leads()
	w.advance(100 * electionTime)
	w.net.Heal()
	w.until("all applied", func() bool { return cut.machine.Applied() == leader.machine.Applied() })
	w.advance(10 * electionTime)
	if after, leads := leader.core.Leads(); !leads || after != before {
		t.Errorf("the leader of term %d must still lead in it, got term %d, leads: %t", before, after, leads)
	}
}

// TestALeaderThatHearsNobody: a leader that receives no messages is replaced, although the others
// receive its messages.
func TestALeaderThatHearsNobody(t *testing.T) {
	w := calmWorld(t, 8)
	old := w.leader()
	for _, o := range w.others(old) {
		w.net.Cut(o.number, old.number, true)
	}
	w.appended(w.otherLeader(old), 1)
}

// TestThePreferredLeads: the preferred node leads again after it was isolated, once it has caught
// up.
func TestThePreferredLeads(t *testing.T) {
	w := calmWorld(t, 12)
	first := w.leader()
	other := w.others(first)[0]
	for _, n := range w.nodes {
		if n.raft != nil {
			n.raft.Prefer(other.name)
		}
	}
	w.until("the preferred leader", func() bool { return w.leader() == other })
	w.net.Isolate(other.number)
	w.appended(w.otherLeader(other), 1)
	w.net.Heal()
	w.until("the preferred leader again", func() bool { return w.leader() == other })
	term, _ := other.core.Leads()
	w.advance(100 * electionTime)
	if after, leads := other.core.Leads(); !leads || after != term {
		t.Errorf("the preferred leader must still lead in term %d, got term %d, leads: %t", term, after, leads)
	}
}

// TestAPausedLeaderReads pauses a leader while the others elect another leader and commit an
// update. A read that the paused leader then answers must include this update.
func TestAPausedLeaderReads(t *testing.T) {
	w := calmWorld(t, 2)
	old := w.leader()
	w.appended(old, 1)
	old.pausedUntil = w.now + 30*electionTime
	w.appended(w.otherLeader(old), 2)
	read := new(reply)
	old.raft.DropInbox()          // it has not received the messages of the new leader
	old.raft.PutRead(read, false) // the read starts after 2 was acknowledged
	old.pausedUntil = 0           // the pause ends
	if _, leads := old.core.Leads(); !leads {
		t.Fatal("the test needs a node that still believes that it leads")
	}
	w.until("answer to the read", func() bool { return read.done })
	old.machine.View(func(l *lists) {
		if len(l.items[0]) != 2 {
			t.Errorf("a read must see the acknowledged update 2, got %v", l.items[0])
		}
	})
}

// withLease returns a calm world whose leader has a lease.
func withLease(t *testing.T, seed uint64) (w *world, leader *node) {
	t.Helper()
	w = calmWorld(t, seed)
	leader = w.leader()
	w.appended(leader, 1)
	read := new(reply)
	leader.raft.PutRead(read, true)
	w.until("answer to the read", func() bool { return read.done })
	return w, leader
}

// leaseRead reads at a node by its lease, and returns the number of items when the read is
// answered. It reconnects the node if the lease alone does not answer the read.
func (w *world) leaseRead(n *node) (items int) {
	w.t.Helper()
	read := new(reply)
	n.raft.PutRead(read, true)
	w.advance(tickTime / 2)
	w.net.Heal()
	if !read.done {
		w.until("answer to the read", func() bool { return read.done })
	}
	n.machine.View(func(l *lists) { items = len(l.items[0]) })
	return items
}

// TestALeaseEnds: the lease of a leader ends while it is paused, although it receives no message
// from the next leader.
func TestALeaseEnds(t *testing.T) {
	w, old := withLease(t, 9)
	old.pausedUntil = w.now + 30*electionTime
	w.appended(w.otherLeader(old), 2)
	w.net.Isolate(old.number)
	old.raft.DropInbox()
	old.pausedUntil = 0
	if n := w.leaseRead(old); n != 2 {
		t.Errorf("a read must see 2 acknowledged updates, got %d", n)
	}
}

// TestALeaseEndsWithATransfer: a transfer of the leadership ends the lease, because the next leader
// does not wait until it expires. The leader or the next leader may ask for the transfer.
func TestALeaseEndsWithATransfer(t *testing.T) {
	for _, asked := range []string{"the leader", "the next leader"} {
		t.Run(asked, func(t *testing.T) {
			w, old := withLease(t, 10)
			next := w.others(old)[0]
			asks, others := old, w.others(old)
			if asked == "the next leader" {
				asks = next
			}
			asks.raft.Do(func(c *raft.Core) {
				if err := c.TransferLeader(next.id); err != nil {
					t.Error(err)
				}
			})
			w.until("the election", func() bool { return next.core.Status().Role == "candidate" })
			for _, o := range others { // messages to the old leader are late from now on
				w.net.Cut(o.number, old.number, true)
			}
			w.until("the next leader", func() bool { return w.leader() == next })
			w.appended(next, 2)
			if n := w.leaseRead(old); n != 2 {
				t.Errorf("a read must see 2 acknowledged updates, got %d", n)
			}
		})
	}
}

// TestALeaseOfAnEarlierTerm: a leader that gets the leadership back needs a new lease, because it may
// not know that the updates of the leader in between are committed.
func TestALeaseOfAnEarlierTerm(t *testing.T) {
	w, old := withLease(t, 10)
	next := w.others(old)[0]
	w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 1})
	old.raft.Do(func(c *raft.Core) {
		if err := c.TransferLeader(next.id); err != nil {
			t.Error(err)
		}
	})
	w.until("the next leader", func() bool { return w.leader() == next })
	w.appended(next, 2)
	r, last := next.propose(3), next.core.Status().Last
	w.until("the update at the old leader", func() bool { return old.core.Status().Last > last })
	w.net.Cut(next.number, old.number, true) // so the old leader does not hear that the update is committed
	w.until("answer", func() bool { return r.done })
	term, _ := next.core.Leads()
	old.raft.Do(func(c *raft.Core) { // the next leader gives the leadership back
		_ = c.Step(next.id, &pb.Message{Type: pb.MsgTimeoutNow.Enum(), From: new(next.id), To: new(old.id), Term: new(term)})
	})
	w.until("the old leader again", func() bool { return w.leader() == old })
	w.net.Isolate(old.number)
	if n := w.leaseRead(old); n != 3 {
		t.Errorf("a read must see 3 acknowledged updates, got %d", n)
	}
}

// TestALeaseAndAVoteOfAHigherTerm: a follower that has answered the leader does not vote for another
// node within an election timeout, even if it then hears of a higher term. The node in that term asked for
// votes before the leader was elected.
func TestALeaseAndAVoteOfAHigherTerm(t *testing.T) {
	const leader, candidate = 8, 9
	snapshot, groupID, err := raft.Bootstrap([]raft.Member{{ID: 7, Name: "n1"}, {ID: leader, Name: "n2"}, {ID: candidate, Name: "n3"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	core, err := raft.NewCore(raft.CoreConfig{Name: "n1", ID: 7, GroupID: groupID, Stored: wal.Stored{Snapshot: snapshot, State: raft.BootstrapState()}})
	if err != nil {
		t.Fatal(err)
	}
	tick := func(times int) {
		for range times {
			if err := core.Tick(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// step returns the answers to a message.
	step := func(m *pb.Message) (answers []pb.MessageType) {
		m.To = new(core.ID())
		if err := core.Step(m.GetFrom(), m); err != nil {
			t.Fatal(err)
		}
		for core.HasEffects() {
			e := core.Effects()
			for _, a := range append(e.Early, e.Late...) {
				answers = append(answers, a.GetType())
			}
			if err := core.Advance(); err != nil {
				t.Fatal(err)
			}
		}
		return answers
	}
	vote := func() []pb.MessageType {
		return step(&pb.Message{Type: pb.MsgVote.Enum(), From: new(uint64(candidate)), Term: new(uint64(6)), Index: new(uint64(1)), LogTerm: new(uint64(1))})
	}
	tick(10)
	step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(leader)), Term: new(uint64(5)), Commit: new(uint64(1))})
	step(&pb.Message{Type: pb.MsgPreVoteResp.Enum(), From: new(uint64(candidate)), Term: new(uint64(6)), Reject: new(true)}) // the answer to a question from before the leader was elected
	if a := vote(); len(a) > 0 {
		t.Errorf("a follower must not vote right after it has answered the leader, got %v", a)
	}
	tick(10)
	if a := vote(); !slices.Contains(a, pb.MsgVoteResp) {
		t.Errorf("the follower must vote after an election timeout, got %v", a)
	}
}

// TestALeaseAndARestart: a follower that has answered the leader and then restarts does not vote
// for another node before the lease has expired.
func TestALeaseAndARestart(t *testing.T) {
	w, old := withLease(t, 11)
	restarted, other := w.others(old)[0], w.others(old)[1]
	w.net.Cut(old.number, other.number, true)
	w.net.Cut(other.number, old.number, true)
	w.advance(3 * electionTime) // the other node campaigns
	read := new(reply)
	old.raft.PutRead(read, true)
	w.until("answer to the read", func() bool { return read.done })
	w.net.Isolate(old.number)
	restarted.crash("crash")
	restarted.restart = 0
	restarted.start()
	other.raft.Do(func(c *raft.Core) { _ = c.Campaign() })
	w.advance(electionTime / 4)
	if w.leader() != old {
		t.Error("no other node may lead before the lease has expired")
	}
	w.appended(w.otherLeader(old), 2)
	if n := w.leaseRead(old); n != 2 {
		t.Errorf("a read must see 2 acknowledged updates, got %d", n)
	}
}

// TestALeaseOfASlowClock: the lease ends before another node can lead, even if the other clocks run 1.9 times as
// fast as the clock of the leader, and whenever the follower ticks.
func TestALeaseOfASlowClock(t *testing.T) {
	for _, electionTicks := range []int{2, 3, 4, 5, 10} {
		for phase := range int64(tickTime) {
			w := calmWorld(t, 13)
			w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 1})
			w.electionTicks = electionTicks
			for _, n := range w.nodes[:simPeers] {
				n.crash("crash")
				n.restart = 0
				n.start()
			}
			w.until("a leader", func() bool { return w.leader() != nil })
			old := w.leader()
			w.appended(old, 1)
			voter, next := w.others(old)[0], w.others(old)[1]
			w.until("the update", func() bool { return next.machine.Applied() == old.machine.Applied() })
			w.net.Isolate(next.number) // it hears no leader, so it has not promised anything
			next.raft.Do(func(c *raft.Core) { _ = c.Campaign() })
			old.slowness = tickTime * 9 / 10
			read := new(reply)
			old.raft.PutRead(read, true)
			w.until("answer to the read", func() bool { voter.nextTick = w.now + phase; return read.done })
			w.net.Heal()
			for _, n := range w.others(old) {
				w.net.Cut(n.number, old.number, true)
				w.net.Cut(old.number, n.number, true)
			}
			w.until("the next leader", func() bool {
				next.raft.Do(func(c *raft.Core) {
					if s := c.Status(); s.Role == "follower" || s.Role == "pre-candidate" {
						_ = c.Campaign()
					}
				})
				return w.leader() != old
			})
			w.appended(w.leader(), 2)
			if n := w.leaseRead(old); n != 2 {
				t.Errorf("with %d ticks in an election timeout and a tick after %d ms, a read must see 2 acknowledged updates, got %d", electionTicks, phase, n)
			}
		}
	}
}

// TestALeaseAmongDifferentTimeouts: a leader whose election timeout is longer than that of the other
// members has a lease that ends before they vote.
func TestALeaseAmongDifferentTimeouts(t *testing.T) {
	w := calmWorld(t, 13)
	w.net.SetFaults(transport.Faults{DelayMin: 1, DelayMax: 1})
	restart := func(n *node, electionTicks int) {
		w.electionTicks = electionTicks
		n.crash("crash")
		n.restart = 0
		n.start()
	}
	for _, n := range w.nodes[:simPeers] {
		restart(n, 20)
	}
	w.until("a leader", func() bool { return w.leader() != nil })
	old := w.leader()
	for _, n := range w.others(old) {
		restart(n, 5)
	}
	w.appended(old, 1)
	for _, n := range w.others(old) {
		w.until("the update", func() bool { return n.machine.Applied() == old.machine.Applied() })
	}
	read := new(reply)
	old.raft.PutRead(read, true)
	w.until("answer to the read", func() bool { return read.done })
	w.net.Isolate(old.number)
	w.until("the next leader", func() bool { return w.leader() != old })
	w.appended(w.leader(), 2)
	if n := w.leaseRead(old); n != 2 {
		t.Errorf("a read must see 2 acknowledged updates, got %d", n)
	}
}

// TestALostLogIsNoticed: a node whose log was removed, while its record is still there, stops with
// ErrLogLost.
func TestALostLogIsNoticed(t *testing.T) {
	w := calmWorld(t, 3)
	leader := w.leader()
	lost := w.others(leader)[0]
	for i := range uint64(5) {
		w.appended(leader, 1+i)
	}
	w.until("all applied", func() bool { return lost.machine.Applied() == leader.machine.Applied() })
	lost.crash("crash")
	lost.disk.Disk, lost.restart = wal.NewDisk(99), 0 // the record is still there
	lost.start()
	for range 100 * electionTime {
		w.now++
		w.step()
		if w.failure != nil {
			break
		}
	}
	if !errors.Is(w.failure, raft.ErrLogLost) || !strings.Contains(w.failure.Error(), "Remove the member (topoctl raft remove "+lost.name+"), empty the folder") {
		t.Errorf("the simulation must end with ErrLogLost, got %v", w.failure)
	}
}

// TestADamagedLogIsRefused: a log with a flipped bit does not open.
func TestADamagedLogIsRefused(t *testing.T) {
	w := calmWorld(t, 4)
	n := w.others(w.leader())[0]
	n.crash("crash")
	n.disk.Flip()
	n.restart = 0
	_, _, err := n.disk.Open(n.identity())
	if !errors.Is(err, wal.ErrDamaged) {
		t.Errorf("Open must return ErrDamaged, got %v", err)
	}
}

// TestAFailedSyncEndsTheNode: a failed sync stops the node, and its unanswered proposals have an
// unknown outcome.
func TestAFailedSyncEndsTheNode(t *testing.T) {
	w := calmWorld(t, 5)
	leader := w.leader()
	w.appended(leader, 1)
	leader.disk.FailSync()
	r := leader.propose(2)
	w.until("answer", func() bool { return r.done })
	if !errors.Is(r.Err, fsm.ErrUnknown) {
		t.Errorf("the proposal must end with ErrUnknown, got %v", r.Err)
	}
	w.appended(w.otherLeader(leader), 3)
}

// TestARemovedMemberEnds: a member that was isolated when it was removed stops when the others
// notify it. It does not disturb the group before, and its name can be used again at once.
func TestARemovedMemberEnds(t *testing.T) {
	w := calmWorld(t, 6)
	leader := w.leader()
	w.appended(leader, 1)
	gone := w.others(leader)[0]
	w.net.Isolate(gone.number)
	change := func(c raft.Change) error {
		r := leader.change(c)
		w.until("change", func() bool { return r.done })
		return r.Err
	}
	if err := change(raft.Change{Kind: raft.Remove, Name: gone.name}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []raft.ChangeKind{raft.Promote, raft.Remove} {
		if err := change(raft.Change{Kind: kind, Name: gone.name}); !errors.Is(err, raft.ErrMembers) {
			t.Errorf("change %d of a removed member must be refused, got %v", kind, err)
		}
	}
	w.advance(20 * electionTime)
	term, _ := leader.core.Leads()
	w.net.Heal()
	w.until("stop of the removed node", func() bool { return gone.removed })
	if after, leads := leader.core.Leads(); !leads || after != term {
		t.Errorf("the leader of term %d must still lead in it, got term %d, leads: %t", term, after, leads)
	}
	gone.disk, gone.removed = newMemoryDisk(7), false
	gone.join()
	if err := change(raft.Change{Kind: raft.AddVoter, Name: gone.name}); err != nil {
		t.Fatal(err)
	}
	w.appended(leader, 2)
	w.until("log at the node that was added again", func() bool { return gone.machine.Applied() == leader.machine.Applied() })
}

// TestNoticesThatSayNothing: notices that are old, or whose sender is not a member, do not stop a
// node.
func TestNoticesThatSayNothing(t *testing.T) {
	w := calmWorld(t, 9)
	leader := w.leader()
	n := w.others(leader)[0]
	for i := range uint64(5) {
		w.appended(leader, 1+i)
	}
	w.until("all applied", func() bool { return n.machine.Applied() == leader.machine.Applied() })
	at := n.core.Status().Applied
	for what, send := range map[string]func(){
		"an old notice":                  func() { n.receive(leader.name, [][]byte{raft.NotMember(leader.raft.GroupID(), leader.id, at)}) },
		"of an unknown name":             func() { n.receive("n9", [][]byte{raft.NotMember(leader.raft.GroupID(), leader.id, at+10)}) },
		"of a node that is not a member": func() { n.receive("n9", [][]byte{raft.NotMember(leader.raft.GroupID(), 99, at+10)}) },
		"of another group":               func() { n.receive(leader.name, [][]byte{raft.NotMember(7, leader.id, at+10)}) },
		"of this node":                   func() { n.receive(n.name, [][]byte{raft.NotMember(leader.raft.GroupID(), 3, at+10)}) },
	} {
		send()
		w.advance(20 * electionTime)
		if n.removed {
			t.Fatalf("a notice must not stop the node: %s", what)
		}
	}
	n.receive(leader.name, [][]byte{raft.NotMember(leader.raft.GroupID(), leader.id, at+10)})
	w.advance(20 * electionTime)
	if !n.removed {
		t.Error("a valid notice must stop the node")
	}
}

// TestRefusedMessages: a node refuses messages that no peer of its group sends, and does not stop.
func TestRefusedMessages(t *testing.T) {
	w := calmWorld(t, 7)
	n, peer := w.nodes[0], w.nodes[1].id
	for what, m := range map[string]*pb.Message{
		"of another":            {Type: pb.MsgApp.Enum(), From: new(peer + 1), To: new(n.id), Term: new(uint64(9))},
		"to another":            {Type: pb.MsgApp.Enum(), From: new(peer), To: new(peer), Term: new(uint64(9))},
		"local":                 {Type: pb.MsgHup.Enum(), From: new(peer), To: new(n.id)},
		"entries with a gap":    {Type: pb.MsgApp.Enum(), From: new(peer), To: new(n.id), Term: new(uint64(9)), Index: new(uint64(1)), Entries: []*pb.Entry{{Index: new(uint64(5)), Term: new(uint64(9))}}},
		"entry without a term":  {Type: pb.MsgApp.Enum(), From: new(peer), To: new(n.id), Term: new(uint64(9)), Index: new(uint64(1)), Entries: []*pb.Entry{{Index: new(uint64(2))}}},
		"entry of the future":   {Type: pb.MsgApp.Enum(), From: new(peer), To: new(n.id), Term: new(uint64(9)), Index: new(uint64(1)), Entries: []*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(10))}}},
		"entry of a wrong type": {Type: pb.MsgApp.Enum(), From: new(peer), To: new(n.id), Term: new(uint64(9)), Index: new(uint64(1)), Entries: []*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(9)), Type: pb.EntryConfChange.Enum()}}},
		"empty snapshot":        {Type: pb.MsgSnap.Enum(), From: new(peer), To: new(n.id), Term: new(uint64(9)), Snapshot: &pb.Snapshot{}},
		"empty proposal":        {Type: pb.MsgProp.Enum(), From: new(peer), To: new(n.id)},
		"read without a key":    {Type: pb.MsgReadIndex.Enum(), From: new(peer), To: new(n.id)},
		"empty read answer":     {Type: pb.MsgReadIndexResp.Enum(), From: new(peer), To: new(n.id), Term: new(uint64(9))},
		"nothing":               {},
	} {
		if err := n.core.Step(peer, m); !errors.Is(err, raft.ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n.core.Err() != nil {
		t.Error(n.core.Err())
	}
}

// FuzzStep passes messages to a node that a compromised peer may send. They may stop the node with
// an error, but must not cause a panic.
func FuzzStep(f *testing.F) {
	f.Add(int32(3), uint64(2), uint64(1), uint64(1), uint64(1), []byte("x"))
	f.Add(int32(7), uint64(9), uint64(9), uint64(9), uint64(9), []byte{})
	f.Fuzz(func(t *testing.T, kind int32, term, index, logTerm, commit uint64, data []byte) {
		w := newWorldOf(t, 1, 0)
		w.noFaults = true
		n, peer := w.nodes[0], w.nodes[1].id
		m := &pb.Message{
			Type: pb.MessageType(kind).Enum(), From: new(peer), To: new(n.id), Term: new(term), Index: new(index),
			LogTerm: new(logTerm), Commit: new(commit), Context: data,
			Entries: []*pb.Entry{{Index: new(index + 1), Term: new(logTerm), Data: data}},
			Snapshot: &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
				Index: new(index), Term: new(logTerm), ConfState: &pb.ConfState{Voters: []uint64{peer, n.id}},
			}},
		}
		if n.core.Step(peer, m) != nil {
			return
		}
		for n.raft.Turn(false) == nil && n.raft.ApplierTurn() {
		}
	})
}

// TestASnapshotThatFailsWhileAMemberWaits: the leader tries a failed snapshot again after some time.
// It must not wait for new entries: the group may be idle until the new member has the state.
func TestASnapshotThatFailsWhileAMemberWaits(t *testing.T) {
	w, leader, spare := withLearner(t)
	w.net.Isolate(spare.number)
	w.advance(electionTime)
	leader.disk.FailSync()
	w.net.Heal()
	w.until("snapshot that fails", func() bool { return leader.raft.SnapshotError() != "" })
	w.until("state at the learner", func() bool { return spare.machine.Applied() == leader.machine.Applied() })
	if !leader.up() || leader.raft.SnapshotError() != "" {
		t.Errorf("the leader must run without a snapshot error, got %q", leader.raft.SnapshotError())
	}
}
