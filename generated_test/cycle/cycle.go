// Package cycle has processors that pass balls in a ring, to themselves and to each other.
package cycle

import "github.com/topogen/topogen/runtime/topo"

const (
	Balls  = 20
	Bounce = 100
)

type Ball struct{ ID, Left int }

type Lost struct{ ID int }

type Seed struct{ n int }

func (s *Seed) Ping(out *SeedSender) error {
	if s.n == Balls {
		return topo.Done
	}
	s.n++
	return out.SendBall(Ball{s.n, Bounce})
}

type Left struct{ Hits int }

func (l *Left) ReceiveBall(m Ball, out *LeftSender) error {
	l.Hits++
	if m.Left == 0 {
		out.SendLost(Lost{m.ID})
		return nil
	}
	out.SendBall(Ball{m.ID, m.Left - 1})
	return nil
}

// Finish runs when the ring is empty. The ball that it sends is still delivered.
func (l *Left) Finish(out *LeftSender) { out.SendBall(Ball{-1, 1}) }

type Right struct {
	Hits, Lost int
	Changed    int // balls that had changed while their handler ran
}

func (r *Right) ReceiveBall(m *Ball, out *RightSender) {
	r.Hits++
	ball := *m
	out.SendBall(*m)
	if *m != ball {
		r.Changed++
	}
}

func (r *Right) ReceiveLost(*Lost) { r.Lost++ }

type Counter struct{ FromRight, FromItself int }

func (c *Counter) ReceiveBallFromRight(m Ball, out *CounterSender) {
	c.FromRight++
	if m.Left == 0 {
		out.SendBall(m)
	}
}

func (c *Counter) ReceiveBallFromCounter(Ball) { c.FromItself++ }
