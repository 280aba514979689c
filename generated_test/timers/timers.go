// Package timers counts ticks.
package timers

import (
	"context"
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

type Stop struct{}

type Feed struct{}

func (*Feed) Ping() error { return topo.Done }

type One struct{ Ticks int }

func (o *One) ReceiveTick(topo.Tick) { o.Ticks++ }
func (o *One) ReceiveStop(Stop)      {}

type All struct{ Ticks int }

func (a *All) ReceiveTick(_ context.Context, t topo.Tick) error { a.Ticks++; return nil }

type Some struct{ Ticks int }

func (s *Some) ReceiveTick(_ context.Context, t topo.Tick) { s.Ticks++ }

type Two struct{ Last []uint64 }

func (w *Two) ReceiveTick(t topo.Tick) error { w.Last = append(w.Last, t.N); return nil }

var ErrTick = errors.New("tick")

type Errors struct{}

func (Errors) ReceiveTick(topo.Tick) error { return ErrTick }
