// Package clustercycle has cycles that lead through several nodes.
package clustercycle

import (
	"fmt"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	// Ball passes through the ring until it has no hops left.
	Ball struct{ At, Hops int }
	// Echo goes to a mirror and back.
	Echo struct{ At, From int }
	// Total is what an instance has counted.
	Total struct {
		By    string
		Count int
	}
)

const (
	Balls = 50 // of each source
	Hops  = 30 // of each ball
	Size  = 6  // instances of the ring
)

// Source throws balls into the ring.
type Source struct{ n int }

// Ping throws one.
func (s *Source) Ping(out *SourceSender) error {
	if s.n == Balls {
		return topo.Done
	}
	s.n++
	return out.SendBall(Ball{At: s.n % Size, Hops: Hops})
}

// Ring passes balls on. At every ball it sends an echo to a mirror.
type Ring struct{ balls, echoes int }

// ReceiveBall passes a ball on.
func (r *Ring) ReceiveBall(m Ball, out *RingSender) {
	r.balls++
	out.SendEcho(Echo{At: m.Hops % 3, From: m.At})
	if m.Hops > 0 {
		out.SendBall(Ball{(m.At + 1) % Size, m.Hops - 1})
	}
}

// ReceiveEcho takes an echo back.
func (r *Ring) ReceiveEcho(m *Echo) error {
	if m.At != m.From {
		return fmt.Errorf("an echo from %d came to another instance", m.From)
	}
	r.echoes++
	return nil
}

// Finish reports what the instance has counted.
func (r *Ring) Finish(out *RingSender) error {
	out.SendTotal(Total{"balls", r.balls})
	out.SendTotal(Total{"echoes", r.echoes})
	return nil
}

// Mirror sends echoes back.
type Mirror struct{ count int }

// ReceiveEcho sends an echo back.
func (x *Mirror) ReceiveEcho(m Echo, out *MirrorSender) {
	x.count++
	out.SendEcho(Echo{At: m.From, From: m.From})
}

// Finish reports what the instance has counted.
func (x *Mirror) Finish(out *MirrorSender) error {
	out.SendTotal(Total{"mirrored", x.count})
	return nil
}

// Sink adds up the totals.
type Sink struct {
	Sums  map[string]int
	Count int
}

// ReceiveTotal adds a total.
func (s *Sink) ReceiveTotal(m Total) {
	if s.Sums == nil {
		s.Sums = make(map[string]int)
	}
	s.Sums[m.By] += m.Count
	s.Count++
}
