// Package shapes has a handler of every shape.
package shapes

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	A struct{ N int }
	B struct{ N int }
	C struct{ N int }
	D struct{ N int }
	E struct{ N int }
	F struct{ N int }
	G struct{ N int }
	H struct{ N int }
	I struct{ N int }
	J struct{ N int }
	K struct{ N int }
	L struct{ N int }
	Q struct{ N int }
	S struct{ N int }
	T struct{ N int }
	U struct{ N int }
	V struct{ N int }
	R struct{ N int }
)

type Source struct{ n int }

func (s *Source) Ping(_ context.Context, out *SourceSender) error {
	if s.n == 10 {
		return topo.Done
	}
	s.n++
	return errors.Join(
		out.SendA(A{s.n}), out.SendB(B{s.n}), out.SendC(C{s.n}), out.SendD(D{s.n}), out.SendE(E{s.n}), out.SendF(F{s.n}),
		out.SendG(G{s.n}), out.SendH(H{s.n}), out.SendI(I{s.n}), out.SendJ(J{s.n}), out.SendK(K{s.n}), out.SendL(L{s.n}),
	)
}

type Handlers struct {
	Seen map[string]int
	last int // last message of a round, to check the order
	Bad  bool
	Live bool // the handlers' context has not ended
}

func (h *Handlers) note(name string, n int) {
	if h.Seen == nil {
		h.Seen = make(map[string]int)
	}
	h.Seen[name] += n
	next := int(name[0]-'A')%12 + 12*(n-1)
	h.Bad = h.Bad || next <= h.last && next != 0
	h.last = next
}

// aSender is an interface for the sender in handlers of this package.
type aSender interface{ SendA(A) }

func (h *Handlers) ReceiveA(m A)                             { h.note("A", m.N) }
func (h *Handlers) ReceiveB(m *B)                            { h.note("B", m.N) }
func (h *Handlers) ReceiveC(m C) error                       { h.note("C", m.N); return nil }
func (h *Handlers) ReceiveD(m *D) error                      { h.note("D", m.N); return nil }
func (h *Handlers) ReceiveE(ctx context.Context, m E)        { h.note("E", m.N); h.Live = ctx.Err() == nil }
func (h *Handlers) ReceiveF(ctx context.Context, m *F) error { h.note("F", m.N); return ctx.Err() }
func (h *Handlers) ReceiveG(m G, out *HandlersSender)        { h.note("G", m.N); out.SendA(A(m)) }
func (h *Handlers) ReceiveH(m *H, out *HandlersSender) error {
	h.note("H", m.N)
	out.SendA(A(*m))
	return nil
}
func (h *Handlers) ReceiveI(m I, out aSender) { h.note("I", m.N); out.SendA(A(m)) }
func (h *Handlers) ReceiveJ(m *J, out interface{ SendA(A) }) error {
	h.note("J", m.N)
	out.SendA(A(*m))
	return nil
}
func (h *Handlers) ReceiveK(_ context.Context, m K, out *HandlersSender) error {
	h.note("K", m.N)
	out.SendAToSink(A(m))
	return nil
}

// ReceiveLFromSource has the longer name, which is used.
func (h *Handlers) ReceiveLFromSource(m L) { h.note("L", m.N) }

func (h *Handlers) ReceiveQ(m Q) R          { return R{m.N + 1} }
func (h *Handlers) ReceiveS(m *S) R         { return R{m.N + 2} }
func (h *Handlers) ReceiveT(m T) (R, error) { return R{m.N + 3}, nil }
func (h *Handlers) ReceiveU(_ context.Context, m *U, out *HandlersSender) (R, error) {
	out.SendA(A{0})
	return R{m.N + 4}, nil
}
func (h *Handlers) ReceiveV(_ context.Context, m V) R { return R{m.N + 5} }

// Values has value receivers.
type Values struct{ Seen *int }

func (v Values) ReceiveA(m A, out *ValuesSender) { *v.Seen += m.N; out.SendA(m) }

func NewValues() Values { return Values{new(int)} }

type Sink struct{ Sum, Calls int }

func (s *Sink) ReceiveAFromHandlers(m *A) { s.Sum += m.N; s.Calls++ }
func (s *Sink) ReceiveA(m A) error        { s.Sum += m.N; s.Calls++; return nil }
