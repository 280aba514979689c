// Package retries has processors whose handlers fail when a test says so.
package retries

import (
	"context"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	Plain      struct{ N int }
	Box[T any] struct{ Of []T }
	Query      struct{ N int }
	Answer     struct{ N int }
	Handling   struct {
		Who string
		N   int
	}
)

// Clone copies a box for another attempt.
func (b Box[T]) Clone() Box[T] { return Box[T]{append([]T(nil), b.Of...)} }

// mark changes what a box holds, and returns how much that is.
func mark(b Box[string]) int {
	for i := range b.Of {
		b.Of[i] = "seen"
	}
	return len(b.Of)
}

// Script says what handlers do, and records their calls.
type Script struct {
	mu   sync.Mutex
	List []Handling
	Act  func(ctx context.Context, h Handling, attempt int) error
}

func (s *Script) handle(ctx context.Context, who string, n int) error {
	s.mu.Lock()
	h := Handling{who, n}
	attempt := 1
	for _, before := range s.List {
		if before == h {
			attempt++
		}
	}
	s.List = append(s.List, h)
	s.mu.Unlock()
	if s.Act == nil {
		return nil
	}
	return s.Act(ctx, h, attempt)
}

// Source executes the steps of a test.
type Source struct {
	*Script
	Steps []func(out *SourceSender) error
}

func (s *Source) Ping(out *SourceSender) error {
	if len(s.Steps) == 0 {
		return topo.Done
	}
	step := s.Steps[0]
	s.Steps = s.Steps[1:]
	return step(out)
}

func (s *Source) ReceiveAnswer(ctx context.Context, m Answer) error {
	return s.handle(ctx, "answer", m.N)
}

// Retries handles messages by pointer, and changes them.
type Retries struct{ *Script }

func (r *Retries) ReceivePlain(ctx context.Context, m *Plain) error {
	n := m.N
	m.N = -1
	return r.handle(ctx, "retries", n)
}
func (r *Retries) ReceiveBox(ctx context.Context, m *Box[string]) error {
	n := len(m.Of)
	for i := range m.Of {
		if m.Of[i] != "" {
			panic("another attempt's trace")
		}
		m.Of[i] = "seen"
	}
	return r.handle(ctx, "retries", n)
}
func (r *Retries) ReceiveQuery(ctx context.Context, m *Query) (Answer, error) {
	n := m.N
	m.N = -1
	return Answer{n}, r.handle(ctx, "retries", n)
}

// Skips makes one attempt.
type Skips struct{ *Script }

func (s *Skips) ReceiveQuery(ctx context.Context, m *Query) (Answer, error) {
	n := m.N
	m.N = -1
	return Answer{n}, s.handle(ctx, "skips", n)
}
func (s *Skips) ReceiveBox(ctx context.Context, m *Box[string]) error {
	return s.handle(ctx, "skips", mark(*m))
}
func (s *Skips) ReceiveTick(ctx context.Context, t topo.Tick) error {
	return s.handle(ctx, "tick", int(t.N))
}

// Once makes one attempt, too, and then its instance ends. It gets its messages by value.
type Once struct{ *Script }

func (o *Once) ReceiveBox(ctx context.Context, m Box[string]) error {
	return o.handle(ctx, "once", mark(m))
}

// Stops ends with each error.
type Stops struct{ *Script }

func (s *Stops) ReceivePlain(ctx context.Context, m Plain) error { return s.handle(ctx, "stops", m.N) }
func (s *Stops) ReceiveBox(ctx context.Context, m Box[string]) error {
	return s.handle(ctx, "stops", len(m.Of))
}
func (s *Stops) ReceiveQuery(ctx context.Context, m Query) (Answer, error) {
	return Answer(m), s.handle(ctx, "stops", m.N)
}

// Hangs may hang while it still uses its message.
type Hangs struct{ *Script }

func (h *Hangs) ReceivePlain(ctx context.Context, m *Plain, out *HangsSender) error {
	n := m.N
	if err := out.SendPlain(*m); err != nil {
		return err
	}
	err := h.handle(ctx, "hangs", n)
	m.N = -1
	return err
}
func (h *Hangs) ReceiveBox(ctx context.Context, m *Box[string]) error {
	err := h.handle(ctx, "hangs", len(m.Of))
	for i := range m.Of {
		m.Of[i] = "seen"
	}
	return err
}
func (h *Hangs) ReceiveQuery(ctx context.Context, m *Query) (Answer, error) {
	n := m.N
	err := h.handle(ctx, "hangs", n)
	m.N = -1
	return Answer{n}, err
}

// Waits takes long, and calls topo.Alive.
type Waits struct{ *Script }

func (w *Waits) ReceivePlain(ctx context.Context, m Plain) error { return w.handle(ctx, "waits", m.N) }

// Morgue keeps dead letters.
type Morgue struct {
	*Script
	Letters *[]topo.DeadLetter
}

func (m *Morgue) ReceiveDeadLetter(ctx context.Context, d topo.DeadLetter) error {
	*m.Letters = append(*m.Letters, d)
	return m.handle(ctx, "morgue", len(*m.Letters))
}

// Sink has a small queue.
type Sink struct{ *Script }

func (s *Sink) ReceivePlain(ctx context.Context, m Plain) error { return s.handle(ctx, "sink", m.N) }
