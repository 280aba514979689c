package main

import (
	"time"

	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// FusionConfig is what `with:` in topology.yml gives: how far each may be off.
type FusionConfig struct {
	Camera, Lidar, Gps float64 // a measurement, in m
	Drift              float64 // an old one, in m for each second of its age
	Jolt               float64 // the estimate, in m from one tick to the next
}

// Fusion estimates where the robot is: accelerations carry the estimate on, and
// measurements pull it back, each the more the more exact and the newer it is. That
// is an alpha-beta filter with a weighted mean.
type Fusion struct {
	config FusionConfig
	in     *FusionInputs // what came last from each sensor, and whether more comes
	state  State
	placed bool      // a measurement has said where the robot is
	fused  time.Time // when measurements were last looked at
}

// NewFusion returns one that does not know where the robot is.
func NewFusion(c FusionConfig) *Fusion { return &Fusion{config: c} }

// Inputs is called first, with the tracker of this instance.
func (f *Fusion) Inputs(in *FusionInputs) { f.in = in }

// The tracker keeps what these are called with, until the next tick.

func (f *Fusion) ReceiveFrame(Frame)   {}
func (f *Fusion) ReceivePoints(Points) {}
func (f *Fusion) ReceiveFix(Fix)       {}

// readingMax is how long one acceleration is taken to last.
const readingMax = 100 * time.Millisecond

// ReceiveReading carries the estimate on.
func (f *Fusion) ReceiveReading(r Reading) {
	if passed := f.advance(r.At); passed < readingMax { // else much has happened between
		f.state.Velocity = f.state.Velocity.plus(r.Acceleration.over(passed))
	}
}

// fusePeriod is that of the ticks in topology.yml.
const fusePeriod = 50 * time.Millisecond

// ReceiveTick pulls the estimate to where the sensors saw the robot.
func (f *Fusion) ReceiveTick(t topo.Tick, out *FusionSender) {
	f.advance(t.Time) // in an emergency nothing else does: straight on
	seen, weight := f.seen(t.Time)
	if weight == 0 {
		return
	}
	if off := seen.minus(f.state.Position); f.placed {
		alpha := f.gain(weight)
		beta := alpha * alpha / (2 - alpha) // as T. R. Benedict and G. W. Bordner have it (1962)
		f.state.Position = f.state.Position.plus(off.times(alpha))
		passed := max(t.Time.Sub(f.fused), fusePeriod) // a late tick has the next one close behind
		f.state.Velocity = f.state.Velocity.plus(off.times(beta / passed.Seconds()))
	} else {
		f.state.Position = seen
	}
	f.placed, f.fused = true, t.Time
	out.SendState(f.state)
}

// advance moves the estimate on and returns how much time has passed.
func (f *Fusion) advance(to time.Time) time.Duration {
	passed := to.Sub(f.state.At)
	if passed <= 0 {
		return 0
	}
	if f.placed {
		f.state.Position = f.state.Position.plus(f.state.Velocity.over(passed))
	}
	f.state.At = to
	return passed
}

// seen is the mean of where the sensors saw the robot last. Nobody is left out: a
// silent one's last word grows old, and counts the less.
func (f *Fusion) seen(now time.Time) (place Vector, weight float64) {
	add := func(m Measurement, has bool, deviation float64) {
		if !has {
			return
		}
		age := now.Sub(m.At)
		w := 1 / (square(deviation) + square(f.config.Drift*age.Seconds()))
		place = place.plus(m.Position.plus(f.state.Velocity.over(age)).times(w))
		weight += w
	}
	frame, has := f.in.Frame.Last()
	add(Measurement(frame), has, f.config.Camera)
	points, has := f.in.Points.Last()
	add(Measurement(points), has, f.config.Lidar)
	fix, has := f.in.Fix.Last()
	add(Measurement(fix), has, f.config.Gps)
	if weight > 0 {
		place = place.times(1 / weight)
	}
	return place, weight
}

// gain is how much of the way the estimate goes to what is seen: much where that is
// more exact than the estimate.
func (f *Fusion) gain(weight float64) float64 {
	return weight / (weight + 1/square(f.config.Jolt))
}

func square(x float64) float64 { return x * x }

// InputClosed says at once who has fallen silent: whoever drives must not wait for the
// next tick. One that is closed for good, as all are when the program ends, has until
// then.
func (f *Fusion) InputClosed(in FusionInput, out *FusionSender) {
	since, state := f.last(in)
	if f.state.Silent[in].IsZero() {
		f.state.Silent[in] = since
	}
	if state == supervise.Broken {
		out.SendState(f.state)
	}
}

// InputRecovered follows the message that came again.
func (f *Fusion) InputRecovered(in FusionInput, out *FusionSender) {
	f.state.Silent[in] = time.Time{}
	out.SendState(f.state)
}

// ProcessorRestarted tells of a new instance of a sensor.
func (f *Fusion) ProcessorRestarted(p ProcessorIndex) {
	for in, name := range sensors {
		if name == p.String() {
			f.state.Restarts[in]++
		}
	}
}

// last is when a sensor's last message was made, and the state of its input.
func (f *Fusion) last(in FusionInput) (at time.Time, state supervise.State) {
	switch in {
	case FusionInputFrame:
		m, _ := f.in.Frame.Last()
		return m.At, f.in.Frame.State()
	case FusionInputPoints:
		m, _ := f.in.Points.Last()
		return m.At, f.in.Points.State()
	case FusionInputReading:
		m, _ := f.in.Reading.Last()
		return m.At, f.in.Reading.State()
	case FusionInputFix:
		m, _ := f.in.Fix.Last()
		return m.At, f.in.Fix.State()
	}
	return f.state.At, supervise.Closed // the ticks
}
