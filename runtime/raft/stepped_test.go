package raft_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// steppedHost is a pool under a Stepper. It starts when the state machine calls Begin.
type steppedHost struct {
	begin func()
	now   time.Time
	woken int
}

func (*steppedHost) BeginReply()       {}
func (*steppedHost) EndReply()         {}
func (h *steppedHost) Wake()           { h.woken++ }
func (*steppedHost) Stepped() bool     { return true }
func (h *steppedHost) Begin()          { h.begin() }
func (h *steppedHost) Time() time.Time { return h.now }

// stamps is a state: the times at which its updates were proposed.
type stamps []int64

// stamp is an update. If lies is set, it changes the state and still returns an error.
type stamp struct{ lies bool }

func (s *stamp) UpdateAt(state *stamps, e fsm.Entry) (int64, error) {
	*state = append(*state, e.Time)
	if s.lies {
		return 0, errors.New("nothing has changed")
	}
	return e.Time, nil
}

func appendInt(b []byte, v *int64) ([]byte, error) { return binary.AppendVarint(b, *v), nil }
func consumeInt(b []byte, v *int64) error          { *v, _ = binary.Varint(b); return nil }

var stampDefinition = fsm.Definition[stamps, stamp, int64]{
	UpdateAt: (*stamp).UpdateAt,
	StateCodec: fsm.Codec[stamps]{
		Append: func(b []byte, s *stamps) ([]byte, error) {
			for _, v := range *s {
				b = binary.AppendVarint(b, v)
			}
			return b, nil
		},
		Consume: func(b []byte, s *stamps) error {
			for len(b) > 0 {
				v, n := binary.Varint(b)
				*s, b = append(*s, v), b[n:]
			}
			return nil
		},
	},
	UpdateCodec: fsm.Codec[stamp]{
		Append: func(b []byte, s *stamp) ([]byte, error) {
			if s.lies {
				b = append(b, 1)
			}
			return b, nil
		},
		Consume: func(b []byte, s *stamp) error { s.lies = len(b) > 0; return nil },
	},
	ResultCodec: fsm.Codec[int64]{Append: appendInt, Consume: consumeInt},
}

// steppedMachine returns a state machine that is configured for three nodes, on a stepped host.
func steppedMachine(t *testing.T) (*raft.Machine[stamps, stamp, int64], *steppedHost) {
	t.Helper()
	m, err := raft.New(raft.Config{
		Topology: "test", Group: "stamps", Peers: map[string]string{"n1": "127.0.0.1:1", "n2": "127.0.0.1:2", "n3": "127.0.0.1:3"},
	}, stampDefinition)
	if err != nil {
		t.Fatal(err)
	}
	h := &steppedHost{now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.begin = func() {
		if err := m.Start(t.Context(), h); err != nil {
			t.Error(err)
		}
	}
	m.Join(h)
	return m, h
}

// TestSteppedTime: updates have the time of the Stepper, and the state machine starts with its first
// use.
func TestSteppedTime(t *testing.T) {
	m, h := steppedMachine(t)
	begin := h.now
	for i := range 3 {
		h.now = begin.Add(time.Duration(i) * time.Hour)
		if at, err := m.Propose(t.Context(), stamp{}); err != nil || at != h.now.UnixNano() {
			t.Errorf("update %d at %d, %v", i, at, err)
		}
	}
}

// TestSteppedSession: the session of the node stays even if clients open as many sessions as they can.
func TestSteppedSession(t *testing.T) {
	m, _ := steppedMachine(t)
	for range 2 {
		if _, err := m.Propose(t.Context(), stamp{}); err != nil {
			t.Fatal(err)
		}
		for i := range 10_001 {
			if _, err := m.OpenSession(t.Context(), fmt.Sprint("client ", i)); err != nil && !(i == 10_000 && errors.Is(err, fsm.ErrTooMany)) {
				t.Fatal(i, err)
			}
		}
	}
	n := 0
	if err := m.Read(t.Context(), func(s *stamps) { n = len(*s) }); err != nil || n != 2 {
		t.Errorf("%d updates, %v", n, err)
	}
}

// TestSteppedEnds: an error that stops the node stops the state machine, and Answer returns it.
func TestSteppedEnds(t *testing.T) {
	m, h := steppedMachine(t)
	if _, err := m.Propose(t.Context(), stamp{lies: true}); !errors.Is(err, fsm.ErrChanged) || fsm.OutcomeKnown(err) {
		t.Errorf("Propose returns %v", err)
	}
	if err := m.Answer(nil); h.woken != 1 || !errors.Is(err, fsm.ErrChanged) {
		t.Errorf("the host must be woken once and Answer must return ErrChanged, got %d and %v", h.woken, err)
	}
	if _, err := m.Propose(t.Context(), stamp{}); !errors.Is(err, fsm.ErrStopped) {
		t.Errorf("a later Propose must return ErrStopped, got %v", err)
	}
	if s := m.Status(); s.Role != "stopped" {
		t.Errorf("the role must be stopped, got %s", s.Role)
	}
}

// TestSteppedAfterTheEnd: a test can read the state after the topology has ended.
func TestSteppedAfterTheEnd(t *testing.T) {
	m, _ := steppedMachine(t)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := m.Propose(ctx, stamp{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := m.Propose(ctx, stamp{}); !errors.Is(err, context.Canceled) || !fsm.OutcomeKnown(err) {
		t.Errorf("with an ended context Propose returns %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Propose(t.Context(), stamp{}); !errors.Is(err, fsm.ErrStopped) {
		t.Errorf("Propose returns %v", err)
	}
	n := 0
	if err := m.Read(t.Context(), func(s *stamps) { n = len(*s) }); err != nil || n != 1 {
		t.Errorf("%d updates, %v", n, err)
	}
}
