// Package failures has processors whose methods fail when a test says so.
package failures

import (
	"context"

	"github.com/topogen/topogen/runtime/topo"
)

type Frame struct{ N int }
type Points struct{ N int }
type Detection struct{ ID, N int }
type Note struct{ ID int }

// Query holds a pointer, so each attempt gets a copy.
type Query struct{ Words []string }

func (q Query) Clone() Query { return Query{append([]string(nil), q.Words...)} }

type Answer struct{ N int }

// Camera fails if its hook returns an error.
type Camera struct{ n int }

func (c *Camera) Init(ctx context.Context) error { return Hooks.call("camera init") }
func (c *Camera) Close() error                   { return Hooks.call("camera close") }
func (c *Camera) Ping(ctx context.Context, out *CameraSender) error {
	if err := Hooks.call("camera"); err != nil {
		return err
	}
	c.n++
	return out.SendFrame(Frame{c.n})
}

type Lidar struct{ n int }

func (l *Lidar) ReceiveTick(tick topo.Tick, out *LidarSender) error {
	l.n++
	out.SendPoints(Points{l.n})
	return Hooks.call("lidar")
}

type Detector struct{}

func (d *Detector) ReceiveFrame(f *Frame, out *DetectorSender) error {
	out.SendDetection(Detection{f.N, f.N})
	out.SendNote(Note{f.N})
	return Hooks.call("detector")
}

func (d *Detector) ReceiveQuery(q *Query) (Answer, error) {
	if len(q.Words) > 0 {
		q.Words[0] = "seen"
	}
	return Answer{len(q.Words)}, Hooks.call("query")
}

func (d *Detector) ProcessorRestarted(p ProcessorIndex) { Hooks.call("detector hears " + p.String()) }

type Planner struct{ in *PlannerInputs }

func (p *Planner) Inputs(in *PlannerInputs)          { p.in = in }
func (p *Planner) ReceivePoints(m Points) error      { return Hooks.call("points") }
func (p *Planner) ReceiveDetection(m Detection)      { Hooks.call("detection") }
func (p *Planner) ReceiveNote(m *Note)               {}
func (p *Planner) InputClosed(in PlannerInput) error { return Hooks.call("closed " + in.String()) }
func (p *Planner) InputRecovered(in PlannerInput) error {
	return Hooks.call("recovered " + in.String())
}
func (p *Planner) AllInputsClosed() { Hooks.call("all closed") }
func (p *Planner) ProcessorRestarted(r ProcessorIndex) error {
	return Hooks.call("planner hears " + r.String())
}

type Asker struct{}

func (a *Asker) ReceiveTick(tick topo.Tick, out *AskerSender) { out.SendQuery(Query{[]string{"a"}}) }
func (a *Asker) ReceiveAnswer(m Answer)                       { Hooks.call("answer") }

type Morgue struct{ Letters []topo.DeadLetter }

func (m *Morgue) ReceiveDeadLetter(d topo.DeadLetter) {
	m.Letters = append(m.Letters, d)
	Hooks.call("letter")
}

// Hooks are called by the handlers, by name.
var Hooks hooks

type hooks struct{ F func(name string) error }

func (h *hooks) call(name string) error {
	if h.F == nil {
		return nil
	}
	return h.F(name)
}
