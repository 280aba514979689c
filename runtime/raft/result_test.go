package raft_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// stack is a state, and move is its update. A pop returns the newest number, and a push returns the
// length of the stack.
type (
	stack []int64
	move  struct {
		push int64 // 0: pop
	}
)

var errEmpty = errors.New("the stack is empty")

func (m *move) Update(s *stack) (int64, error) {
	if m.push != 0 {
		*s = append(*s, m.push)
		return int64(len(*s)), nil
	}
	last := len(*s) - 1
	if last < 0 {
		return 0, fmt.Errorf("pop: %w", errEmpty)
	}
	v := (*s)[last]
	*s = (*s)[:last]
	return v, nil
}

var numberCodec = fsm.Codec[int64]{
	Append: func(b []byte, v *int64) ([]byte, error) { return binary.AppendVarint(b, *v), nil },
	Consume: func(b []byte, v *int64) error {
		n := 0
		if *v, n = binary.Varint(b); n <= 0 {
			return errors.New("invalid number")
		}
		return nil
	},
}

var stackDefinition = fsm.Definition[stack, move, int64]{
	Update: (*move).Update,
	StateCodec: fsm.Codec[stack]{
		Append: func(b []byte, s *stack) ([]byte, error) {
			for _, v := range *s {
				b = binary.LittleEndian.AppendUint64(b, uint64(v))
			}
			return b, nil
		},
		Consume: func(b []byte, s *stack) error {
			for ; len(b) > 0; b = b[8:] {
				*s = append(*s, int64(binary.LittleEndian.Uint64(b)))
			}
			return nil
		},
	},
	UpdateCodec: fsm.Codec[move]{
		Append:  func(b []byte, m *move) ([]byte, error) { return numberCodec.Append(b, &m.push) },
		Consume: func(b []byte, m *move) error { return numberCodec.Consume(b, &m.push) },
	},
	ResultCodec: numberCodec,
	Errors:      []fsm.Sentinel{{Name: "errEmpty", Err: errEmpty}},
}

type stackMachine = raft.Machine[stack, move, int64]

func openStack(t *testing.T, c raft.Config) *stackMachine {
	t.Helper()
	c.Topology, c.Group, c.Logger = "test", "stack", slog.New(slog.DiscardHandler)
	m, err := raft.New(c, stackDefinition)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestResults: on each node an update returns its value, or an error that matches the sentinel. The
// same holds for a repeated request at another node, after a restart and after a snapshot.
func TestResults(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		peers := named("n1", "n2", "n3")
		config := func(name string) raft.Config { return v.connect(raft.Config{Node: name, Peers: peers, Forward: true}) }
		ms := map[string]*stackMachine{}
		for name := range peers {
			ms[name] = openStack(t, config(name))
		}
		ctx := t.Context()
		var all sync.WaitGroup
		for _, m := range ms {
			all.Go(func() {
				if _, err := m.Propose(ctx, move{}); !errors.Is(err, errEmpty) {
					t.Errorf("an empty stack: %v", err)
				}
			})
		}
		all.Wait()
		session, err := ms["n1"].OpenSession(ctx, "client")
		if err != nil {
			t.Fatal(err)
		}
		type request struct {
			update move
			want   int64
			err    error
		}
		requests := []request{{move{7}, 1, nil}, {move{8}, 2, nil}, {move{}, 8, nil}, {move{}, 7, nil}, {move{}, 0, errEmpty}}
		ask := func(m *stackMachine, sequence int) {
			t.Helper()
			r := requests[sequence-1]
			got, err := m.ProposeAs(ctx, session.Number(), uint64(sequence), uint64(sequence), r.update)
			if got.Value != r.want || !errors.Is(err, r.err) || (err == nil) != (r.err == nil) || got.Err != err {
				t.Errorf("request %d: %+v, %v, want %d, %v", sequence, got, err, r.want, r.err)
			}
		}
		for i := range requests {
			for range 2 {
				for _, m := range ms {
					ask(m, i+1)
				}
			}
		}
		for name, m := range ms {
			if _, err := m.Snapshot(ctx); err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			ms[name] = openStack(t, config(name))
			ask(ms[name], len(requests))
		}
		for _, m := range ms {
			if _, err := m.Propose(ctx, move{5}); err != nil {
				t.Error(err)
			}
			if v, err := m.Propose(ctx, move{}); v != 5 || err != nil {
				t.Errorf("popped %d, %v", v, err)
			}
		}
	})
}

// TestOutcomesHaveValues: the controller of a state machine receives the value that Update returned.
func TestOutcomesHaveValues(t *testing.T) {
	m, err := raft.New(raft.Config{Topology: "test", Group: "stack", Disk: newMemoryDisk(1), Logger: slog.New(slog.DiscardHandler)}, stackDefinition)
	if err != nil {
		t.Fatal(err)
	}
	h := &stackHost{poisonHost: newPoisonHost()}
	if err := m.Start(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	for _, u := range []move{{3}, {}, {}} {
		if err := m.ReceiveProposal(t.Context(), &fsm.Proposal[move]{Update: u}); err != nil {
			t.Fatal(err)
		}
		for n := len(h.got); len(h.got) == n; {
			<-h.woken
			if err := m.Answer(h); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h.got[0].Value != 1 || h.got[1].Value != 3 || h.got[2].Value != 0 || !errors.Is(h.got[2].Err, errEmpty) {
		t.Errorf("outcomes %+v", h.got)
	}
}

type stackHost struct {
	*poisonHost
	got []fsm.Outcome[move, int64]
}

func (h *stackHost) Outcome(o fsm.Outcome[move, int64]) { h.got = append(h.got, o) }
func (h *stackHost) Upcoming(fsm.Upcoming[move])        {}
