package raft_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// poison is an update that its codec cannot always encode and decode.
type poison int64

const (
	unreadable  poison = -1
	panics      poison = -2 // when it is decoded
	panicsFirst poison = -3 // when it is encoded
	unwritable  poison = -4
	unsteady    poison = -5 // it is encoded differently each time
	goexits     poison = -6 // ends its goroutine when it is applied
)

type total int64

func (p *poison) Update(t *total) error {
	if *p == goexits {
		runtime.Goexit()
	}
	*t += total(*p)
	return nil
}

var poisonDefinition = fsm.Definition[total, poison, struct{}]{
	Update: fsm.NoResult((*poison).Update), StateCodec: totalCodec, UpdateCodec: poisonCodec,
}

var (
	errCodec  = errors.New("no such poison")
	unsteadys int64
)

var poisonCodec = fsm.Codec[poison]{
	Append: func(b []byte, p *poison) ([]byte, error) {
		switch *p {
		case panicsFirst:
			panic(errCodec)
		case unwritable:
			return b, errCodec
		case unsteady:
			unsteadys++
			return binary.AppendVarint(binary.AppendVarint(b, int64(*p)), unsteadys), nil
		}
		return binary.AppendVarint(b, int64(*p)), nil
	},
	Consume: func(b []byte, p *poison) error {
		v, _ := binary.Varint(b)
		switch *p = poison(v); *p {
		case unreadable:
			return errCodec
		case panics:
			panic(errCodec)
		}
		return nil
	},
}

var totalCodec = fsm.Codec[total]{
	Append:  func(b []byte, t *total) ([]byte, error) { return binary.AppendVarint(b, int64(*t)), nil },
	Consume: func(b []byte, t *total) error { v, _ := binary.Varint(b); *t = total(v); return nil },
}

// openPoisoned starts a state machine on one disk.
func openPoisoned(t *testing.T, disk raft.Disk, host fsm.Host) *raft.Machine[total, poison, struct{}] {
	t.Helper()
	m, err := raft.New(raft.Config{
		Disk: disk, Topology: "test", Group: "total", Logger: slog.New(slog.DiscardHandler),
	}, poisonDefinition)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(context.Background(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestPoison: an update that its codec cannot encode or decode is refused by all functions that
// propose it, and is never written to the log.
func TestPoison(t *testing.T) {
	disk := newMemoryDisk(1)
	m := openPoisoned(t, disk, nil)
	session, err := m.OpenSession(t.Context(), "client")
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, p poison, err error) {
		t.Helper()
		if !errors.Is(err, fsm.ErrCodec) || !fsm.OutcomeKnown(err) || !strings.Contains(err.Error(), "raft_test.poison") {
			t.Errorf("%s of %d: %v", what, p, err)
		}
		if says := strings.Contains(err.Error(), errCodec.Error()); says != (p != unsteady) {
			t.Errorf("%s of %d: %v", what, p, err)
		}
	}
	all := []poison{unreadable, panics, panicsFirst, unwritable, unsteady}
	for i, p := range all {
		_, err := m.Propose(t.Context(), p)
		refused("Propose", p, err)
		_, err = m.ProposeAs(t.Context(), session.Number(), uint64(i)+1, 1, p)
		refused("ProposeAs", p, err)
		_, err = session.Propose(t.Context(), p)
		refused("Session.Propose", p, err)
		if _, err := m.Propose(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	h := newPoisonHost()
	m = openPoisoned(t, disk, h)
	for _, p := range all {
		if err := m.ReceiveProposal(t.Context(), &fsm.Proposal[poison]{Update: p}); err != nil {
			t.Fatal(err)
		}
		h.turn(t, m)
		refused("ReceiveProposal", p, h.outcomes[len(h.outcomes)-1].Err)
		many := make([]poison, 1000)
		many[999] = p
		refused("ReceiveUpdates", p, m.ReceiveUpdates(t.Context(), &fsm.Updates[poison]{Updates: many}))
	}
	if err := m.ReceiveGetUpcoming(t.Context(), &fsm.GetUpcoming{}); err != nil {
		t.Fatal(err)
	}
	h.turn(t, m)
	if n := len(h.upcoming[0].Updates); n != 0 {
		t.Errorf("no update of the refused messages must be added, got %d", n)
	}
	if err := m.Read(t.Context(), func(s *total) {
		if *s != total(len(all)) {
			t.Errorf("the state is %d, want %d", *s, len(all))
		}
	}); err != nil {
		t.Error(err)
	}
}

// TestUpdateEndsItsGoroutine: if Update ends its goroutine, as t.FailNow does, the state machine
// stops with an error that says so, and no caller waits forever.
func TestUpdateEndsItsGoroutine(t *testing.T) {
	disk := newMemoryDisk(1)
	for start := range 2 { // the second time the update is in the log
		m, err := raft.New(raft.Config{Disk: disk, Topology: "test", Group: "total", Logger: slog.New(slog.DiscardHandler)}, poisonDefinition)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := m.Start(ctx, nil); err != nil {
			t.Fatal(err)
		}
		reads := make(chan error, 10)
		_, err = m.Propose(ctx, goexits)
		if start == 0 && fsm.OutcomeKnown(err) || err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("start %d: Propose: %v", start, err)
		}
		for range cap(reads) {
			go func() { reads <- m.Read(ctx, func(*total) {}) }()
		}
		for range cap(reads) {
			if err := <-reads; !errors.Is(err, fsm.ErrNotRunning) && !errors.Is(err, fsm.ErrStopped) {
				t.Errorf("start %d: Read: %v", start, err)
			}
		}
		if err := m.Close(); err == nil || !strings.Contains(err.Error(), "ended its goroutine (runtime.Goexit, perhaps by t.FailNow)") {
			t.Errorf("start %d: Close: %v", start, err)
		}
	}
}

// poisonHost is a pool with one state machine.
type poisonHost struct {
	woken    chan struct{}
	outcomes []fsm.Outcome[poison, struct{}]
	upcoming []fsm.Upcoming[poison]
}

func newPoisonHost() *poisonHost { return &poisonHost{woken: make(chan struct{}, 1)} }

func (h *poisonHost) BeginReply()   {}
func (h *poisonHost) EndReply()     {}
func (h *poisonHost) Stepped() bool { return false }
func (h *poisonHost) Wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}
func (h *poisonHost) Outcome(o fsm.Outcome[poison, struct{}]) { h.outcomes = append(h.outcomes, o) }
func (h *poisonHost) Upcoming(u fsm.Upcoming[poison])         { h.upcoming = append(h.upcoming, u) }

// turn runs turns until one has an answer.
func (h *poisonHost) turn(t *testing.T, m *raft.Machine[total, poison, struct{}]) {
	t.Helper()
	for before := len(h.outcomes) + len(h.upcoming); len(h.outcomes)+len(h.upcoming) == before; {
		<-h.woken
		if err := m.Answer(h); err != nil {
			t.Fatal(err)
		}
	}
}
