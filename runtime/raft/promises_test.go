package raft_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// promiseChecker wraps the log and the transport of a node. It checks that the node has saved
// everything that its messages promise.
type promiseChecker struct {
	wal.Log
	transport.Transport

	mu       sync.Mutex
	term     uint64
	vote     uint64
	last     uint64
	promises map[pb.MessageType]int
	broken   []string
}

func (w *promiseChecker) Close() error { return w.Log.Close() }

func (w *promiseChecker) Save(state *pb.HardState, entries []*pb.Entry, sync bool) error {
	err := w.Log.Save(state, entries, sync)
	w.mu.Lock()
	defer w.mu.Unlock()
	if state != nil && sync {
		w.term, w.vote = state.GetTerm(), state.GetVote()
	}
	if len(entries) > 0 && sync {
		w.last = entries[len(entries)-1].GetIndex()
	}
	return err
}

func (w *promiseChecker) SaveSnapshot(s *pb.Snapshot) error {
	err := w.Log.SaveSnapshot(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = max(w.last, s.GetMetadata().GetIndex())
	return err
}

func (w *promiseChecker) Send(to string, messages ...transport.Message) {
	w.mu.Lock()
	for _, o := range messages {
		m := new(pb.Message)
		payload, ofEngine, err := raft.Payload(o.Payload)
		if err == nil && ofEngine {
			err = proto.Unmarshal(payload, m)
		}
		if err != nil {
			w.broken = append(w.broken, err.Error())
		}
		if !ofEngine {
			continue
		}
		held := true
		switch m.GetType() {
		case pb.MsgAppResp:
			held = m.GetReject() || m.GetIndex() <= w.last && m.GetTerm() <= w.term
		case pb.MsgVoteResp:
			held = m.GetReject() || m.GetTerm() == w.term && m.GetTo() == w.vote
		case pb.MsgVote:
			held = m.GetTerm() == w.term && m.GetFrom() == w.vote
		}
		w.promises[m.GetType()]++
		if !held {
			w.broken = append(w.broken, fmt.Sprintf("%v, with term %d, vote %x, entries to %d saved", m, w.term, w.vote, w.last))
		}
	}
	w.mu.Unlock()
	w.Transport.Send(to, messages...)
}

// TestANodePromisesWhatItHasSaved checks all messages between three nodes during elections,
// replication and transfers of the leadership.
func TestANodePromisesWhatItHasSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := transport.NewMemory(transport.MemoryOptions{})
		peers := map[string]string{"n1": "", "n2": "", "n3": ""}
		var witnesses []*promiseChecker
		var ms []*machine
		for i, name := range []string{"n1", "n2", "n3"} {
			link, err := network.Join(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = link.Close() })
			w := &promiseChecker{Transport: link, promises: map[pb.MessageType]int{}}
			disk := newMemoryDisk(uint64(i))
			disk.wrap = func(log wal.Log) wal.Log { w.Log = log; return w }
			witnesses = append(witnesses, w)
			ms = append(ms, open(t, raft.Config{
				Node: name, Peers: peers, Disk: disk, Transport: w, Forward: true, SnapshotEvery: 10,
				Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond,
			}))
		}
		for round := range uint64(10) {
			for i := range uint64(10) {
				if _, err := ms[i%3].Propose(t.Context(), appendTo{0, (10*round+i)*13*17 + 1, -1}); err != nil {
					t.Fatal(err)
				}
			}
			for i, m := range ms {
				if s := m.Status(); s.Role == "leader" {
					_ = m.TransferLeader(t.Context(), fmt.Sprintf("n%d", (i+1)%3+1)) // it may have just lost the leadership
					break
				}
			}
		}
		all := map[pb.MessageType]int{}
		for i, w := range witnesses {
			w.mu.Lock()
			for kind, n := range w.promises {
				all[kind] += n
			}
			for _, b := range w.broken {
				t.Errorf("n%d sent a message before it had saved its content: %s", i+1, b)
			}
			w.mu.Unlock()
		}
		for _, kind := range []pb.MessageType{pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp} {
			if all[kind] == 0 {
				t.Errorf("the nodes must send a %v, got %v", kind, all)
			}
		}
	})
}
