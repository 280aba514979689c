package raft_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/raft"
)

// processorHost is a pool with one instance, a Processor. Its controller carries
// messages to the other hosts. It runs in one goroutine.
type processorHost struct {
	t       *testing.T
	p       *raft.Processor
	wake    chan struct{}
	others  map[string]*processorHost
	answers chan any

	mu    sync.Mutex
	inbox []any
}

func (s *processorHost) BeginReply()   {}
func (s *processorHost) EndReply()     {}
func (s *processorHost) Stepped() bool { return false }
func (s *processorHost) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *processorHost) MasterInfo(m raft.MasterInfo)             { s.answers <- m }
func (s *processorHost) NextEntry(m raft.NextEntry)               { s.answers <- m }
func (s *processorHost) Answer(m raft.Answer)                     { s.answers <- m }
func (s *processorHost) RequestVote(m raft.RequestVote)           { s.deliver(m.To, &m) }
func (s *processorHost) ResponseVote(m raft.ResponseVote)         { s.deliver(m.To, &m) }
func (s *processorHost) Masterbeat(m raft.Masterbeat)             { s.deliver(m.To, &m) }
func (s *processorHost) FollowerResponse(m raft.FollowerResponse) { s.deliver(m.To, &m) }
func (s *processorHost) InstallSnapshot(m raft.InstallSnapshot)   { s.deliver(m.To, &m) }

func (s *processorHost) deliver(to string, m any) {
	if o := s.others[to]; o != nil {
		o.send(m)
	}
}

// send puts a message into the inbox of the processor.
func (s *processorHost) send(m any) {
	s.mu.Lock()
	s.inbox = append(s.inbox, m)
	s.mu.Unlock()
	s.Wake()
}

func (s *processorHost) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		list := s.inbox
		s.inbox = nil
		s.mu.Unlock()
		for _, m := range list {
			if err := s.receive(ctx, m); err != nil {
				s.t.Error(err)
			}
		}
		if err := s.p.Answer(s); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *processorHost) receive(ctx context.Context, m any) error {
	switch m := m.(type) {
	case *raft.RequestVote:
		return s.p.ReceiveRequestVote(ctx, m)
	case *raft.ResponseVote:
		return s.p.ReceiveResponseVote(ctx, m)
	case *raft.Masterbeat:
		return s.p.ReceiveMasterbeat(ctx, m)
	case *raft.FollowerResponse:
		return s.p.ReceiveFollowerResponse(ctx, m)
	case *raft.InstallSnapshot:
		return s.p.ReceiveInstallSnapshot(ctx, m)
	case *raft.MasterCommit:
		return s.p.ReceiveMasterCommit(ctx, m)
	case *raft.GetMasterInfo:
		return s.p.ReceiveGetMasterInfo(ctx, m)
	case *raft.GetNextEntry:
		return s.p.ReceiveGetNextEntry(ctx, m)
	case *raft.MarkApplied:
		return s.p.ReceiveMarkApplied(ctx, m)
	case *raft.TransferLeader:
		return s.p.ReceiveTransferLeader(ctx, m)
	case *raft.Read:
		return s.p.ReceiveRead(ctx, m)
	case *raft.ChangeMembers:
		return s.p.ReceiveChangeMembers(ctx, m)
	}
	return fmt.Errorf("unknown message %T", m)
}

// ask sends a message to the processor and waits for the answer.
func ask[A any](s *processorHost, m any) A {
	s.t.Helper()
	s.send(m)
	for {
		select {
		case v := <-s.answers:
			if a, ok := v.(A); ok {
				return a
			}
			s.t.Fatalf("%T is answered with %+v", m, v)
		case <-s.t.Context().Done():
			s.t.Fatal("no answer")
		}
	}
}

// startProcessors starts three Processors with controllers that carry their messages.
func startProcessors(t *testing.T) []*processorHost {
	ctx, cancel := context.WithCancel(t.Context())
	peers := map[string]string{"n1": "", "n2": "", "n3": ""}
	all := map[string]*processorHost{}
	var list []*processorHost
	var done sync.WaitGroup
	for i := range 3 {
		s := &processorHost{t: t, wake: make(chan struct{}, 1), others: all, answers: make(chan any, 100)}
		var err error
		name := fmt.Sprintf("n%d", i+1)
		s.p, err = raft.NewProcessor(raft.Config{
			Topology: "test", Group: "log", Node: name, Peers: peers, Disk: newMemoryDisk(uint64(i)), Carried: true, Forward: true, SnapshotEvery: 10,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = s
		list = append(list, s)
	}
	for _, s := range list {
		if err := s.p.Start(ctx, s); err != nil {
			t.Fatal(err)
		}
		done.Go(func() { s.run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		done.Wait()
		for _, s := range list {
			if err := s.p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return list
}

// TestTheCoreOfRast commits transactions at each node and reads them at each, only with the messages
// between processors and controllers.
func TestTheCoreOfRast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := startProcessors(t)
		for i := range 30 {
			a := ask[raft.Answer](list[i%3], &raft.MasterCommit{Proposer: 2, Request: uint64(i), Data: fmt.Append(nil, i)})
			if a.Err != nil || a.Proposer != 2 || a.Request != uint64(i) {
				t.Fatalf("transaction %d: %+v", i, a)
			}
		}
		for n, s := range list {
			if a := ask[raft.Answer](s, &raft.Read{Request: 7}); a.TransactionID != 30 || a.Err != nil {
				t.Errorf("node %d reads %+v, want transaction 30", n+1, a)
			}
			for i := range 30 {
				e := ask[raft.NextEntry](s, &raft.GetNextEntry{Proposer: 1})
				if e.TransactionID != uint64(i+1) || string(e.Data) != fmt.Sprint(i) || e.Proposer != 1 {
					t.Fatalf("node %d, entry %d: %+v", n+1, i+1, e)
				}
				s.send(&raft.MarkApplied{TransactionID: e.TransactionID})
			}
			s.send(&raft.MarkApplied{TransactionID: 30, State: []byte("thirty")})
		}
		masters := 0
		for _, s := range list {
			m := ask[raft.MasterInfo](s, &raft.GetMasterInfo{})
			if m.IsMaster {
				masters++
			}
			if m.TransactionID != 30 || m.Master == "" {
				t.Errorf("%+v", m)
			}
		}
		if masters != 1 {
			t.Errorf("there must be 1 master, got %d", masters)
		}
		list[0].send(&raft.GetNextEntry{}) // is answered once there is a next entry
		if a := ask[raft.Answer](list[1], &raft.MasterCommit{Data: []byte("last")}); a.Err != nil {
			t.Error(a.Err)
		}
		if e := (<-list[0].answers).(raft.NextEntry); e.TransactionID != 31 || string(e.Data) != "last" {
			t.Errorf("%+v", e)
		}
	})
}

// TestAControllerAddsANodeThatDoesNotRun: the answer says that the node has not introduced itself, and
// other changes can be made.
func TestAControllerAddsANodeThatDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := startProcessors(t)
		leader := list[0]
		for ask[raft.MasterInfo](leader, &raft.GetMasterInfo{}).IsMaster == false {
			ask[raft.Answer](leader, &raft.TransferLeader{To: "n1"}) // fails if there is no leader yet
			time.Sleep(time.Second)
		}
		a := ask[raft.Answer](leader, &raft.ChangeMembers{Changes: []raft.Change{{Kind: raft.AddLearner, Name: "n4", Address: "n4"}}})
		if !errors.Is(a.Err, raft.ErrMembers) || !strings.Contains(a.Err.Error(), "n4 (n4) has not answered with its id") {
			t.Errorf("the change must be refused, got %v", a.Err)
		}
		if a := ask[raft.Answer](leader, &raft.ChangeMembers{Changes: []raft.Change{{Kind: raft.Remove, Name: "n3"}}}); a.Err != nil {
			t.Error(a.Err)
		}
	})
}
