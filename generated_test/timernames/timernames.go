// Package timernames has processors with several named timers.
package timernames

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

type Meter struct{ Polled, Flushed, Ticked int }

func (m *Meter) ReceiveTickPoll(topo.Tick) { m.Polled++ }

func (m *Meter) ReceiveTickFlushAll(_ context.Context, t topo.Tick) error { m.Flushed++; return nil }

func (m *Meter) ReceiveTick(topo.Tick) { m.Ticked++ }

type Planner struct{ Polled, Watched int }

func (p *Planner) ReceiveTickPoll(topo.Tick) { p.Polled++ }

func (p *Planner) ReceiveTickWatch(topo.Tick) error { p.Watched++; return nil }

var errTick = errors.New("tick")

func (p *Planner) ReceiveTickFail(topo.Tick) error { return errTick }

// InputClosed is called for the timer with a timeout.
func (p *Planner) InputClosed(i PlannerInput) {
	if i != PlannerInputTickPoll && i != PlannerInputTickWatch && i != PlannerInputTickFail {
		panic(i.String())
	}
}
