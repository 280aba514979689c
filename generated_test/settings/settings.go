package settings

import (
	"context"

	"github.com/topogen/topogen/runtime/topo"
)

// Ball goes round.
type Ball struct{ Laps int }

// Noon is sent by the clock.
type Noon struct{ Day int }

// Left passes the ball to Right.
type Left struct{ Ticks int }

func (*Left) ReceiveBall(ctx context.Context, m *Ball, out *LeftSender) error {
	m.Laps++
	out.SendBall(*m)
	return ctx.Err()
}

func (l *Left) ReceiveTick(topo.Tick) { l.Ticks++ }

// Right passes the ball back, and to Single after the last lap.
type Right struct{}

func (Right) ReceiveBall(m Ball, out *RightSender) error {
	if m.Laps < 10 {
		out.SendBallToLeft(m)
		return nil
	}
	out.SendBallToSingle(m)
	return nil
}

// Single keeps its messages.
type Single struct {
	Balls []Ball
	Noons []Noon
}

func (s *Single) ReceiveBall(m Ball) { s.Balls = append(s.Balls, m) }

func (s *Single) ReceiveNoon(m Noon) error {
	s.Noons = append(s.Noons, m)
	return nil
}

// Clock sends once and is done.
type Clock struct{}

func (Clock) Ping(out *ClockSender) error {
	out.SendNoon(Noon{Day: 1})
	return topo.Done
}
