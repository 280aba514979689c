package raft_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft"
)

// TestALeaderWithAnotherLog: a follower stops when a message of the leader contradicts an entry
// that the follower knows to be committed, in every type of message.
func TestALeaderWithAnotherLog(t *testing.T) {
	const seed = 70
	prepared := func() (w *world, n *node, from *node, at uint64, term uint64) {
		w = calmWorld(t, seed)
		from = w.leader()
		n = w.others(from)[0]
		for i := range uint64(5) {
			w.appended(from, 1+i)
		}
		w.until("all applied", func() bool { return n.core.Status().Commit == from.core.Status().Last })
		w.advance(electionTime) // the commit index is saved
		term, _ = from.core.Leads()
		return w, n, from, n.core.Status().Commit - 1, term
	}
	for what, message := range map[string]func(m *pb.Message, at, term uint64){
		"the entry before": func(m *pb.Message, at, term uint64) {
			m.Type, m.Index, m.LogTerm = pb.MsgApp.Enum(), new(at), new(term+1)
		},
		"an entry": func(m *pb.Message, at, term uint64) {
			m.Type, m.Index, m.LogTerm = pb.MsgApp.Enum(), new(at-1), new(term)
			m.Entries = []*pb.Entry{{Index: new(at), Term: new(term + 1)}}
		},
		"a snapshot": func(m *pb.Message, at, term uint64) {
			w := calmWorld(t, seed+1) // a snapshot of another group, with valid members
			m.Type, m.Snapshot = pb.MsgSnap.Enum(), w.leader().snapshot()
			m.Snapshot.Metadata.Index, m.Snapshot.Metadata.Term = new(at), new(term+1)
		},
	} {
		t.Run(what, func(t *testing.T) {
			_, n, from, at, term := prepared()
			m := &pb.Message{From: new(from.id), To: new(n.id), Term: new(term + 2)}
			message(m, at, term)
			err := n.core.Step(from.id, m)
			if !errors.Is(err, raft.ErrConflict) || !errors.Is(n.core.Err(), raft.ErrConflict) {
				t.Fatalf("the node must stop with ErrConflict, got %v, %v", err, n.core.Err())
			}
			for _, part := range []string{
				fmt.Sprintf("entry %d is of term %d here, and of term %d at %s", at, term, term+1, from.name), "topoctl raft",
			} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error must contain %q, got: %v", part, err)
				}
			}
		})
		t.Run(what+", of an old leader", func(t *testing.T) {
			_, n, from, at, term := prepared()
			m := &pb.Message{From: new(from.id), To: new(n.id), Term: new(term - 1)}
			message(m, at, term-2)
			if err := n.core.Step(from.id, m); err != nil || n.core.Err() != nil {
				t.Errorf("the node must ignore the message, got %v, %v", err, n.core.Err())
			}
		})
	}
}

// TestTwoLogsOfOneGroup gives two of three nodes a different history than the third. The first
// node that receives entries of the other history stops, and no node applies entries of both.
func TestTwoLogsOfOneGroup(t *testing.T) {
	w := calmWorld(t, 80)
	leader := w.leader()
	w.appended(leader, 1)
	third := w.others(leader)[0]
	w.until("all applied", func() bool { return third.core.Status().Commit == leader.core.Status().Last })
	w.advance(electionTime)
	before, _ := leader.core.Leads()
	at := third.core.Status().Commit
	third.crash("crash")
	log, stored, err := third.disk.Open(third.identity())
	if err != nil {
		t.Fatal(err)
	}
	// The next entries of the third node differ from the entries of the others.
	state := stored.State
	state.Term, state.Commit = new(before+1), new(at+2)
	if err := errors.Join(log.Save(state, []*pb.Entry{
		{Index: new(at + 1), Term: new(before + 1)}, {Index: new(at + 2), Term: new(before + 1)},
	}, true), log.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5) {
		w.appended(leader, 2+i)
	}
	third.restart = 0
	third.start()
	for range 100 * electionTime {
		w.step()
		if w.failure != nil {
			break
		}
	}
	if !errors.Is(w.failure, raft.ErrConflict) {
		t.Errorf("the simulation must end with ErrConflict, got %v", w.failure)
	}
}

// TestALeaderThatLacksEntries: a leader that has lost entries of its own term stops when a
// follower acknowledges them.
func TestALeaderThatLacksEntries(t *testing.T) {
	w := calmWorld(t, 71)
	l := w.leader()
	from := w.others(l)[0]
	w.appended(l, 1)
	term, _ := l.core.Leads()
	last := l.core.Status().Last
	answer := func(index, term uint64) error {
		return l.core.Step(from.id, &pb.Message{
			Type: pb.MsgAppResp.Enum(), From: new(from.id), To: new(l.id), Term: new(term), Index: new(index),
		})
	}
	if err := errors.Join(answer(last, term), answer(last+1, term-1)); err != nil {
		t.Fatalf("an answer without such entries must be accepted, got: %v", err)
	}
	err := answer(last+1, term)
	if !errors.Is(err, raft.ErrLogLost) || !errors.Is(l.core.Err(), raft.ErrLogLost) || !strings.Contains(err.Error(), "Remove the member (topoctl raft remove "+l.name) {
		t.Errorf("the leader must stop with ErrLogLost, got %v, %v", err, l.core.Err())
	}
}
