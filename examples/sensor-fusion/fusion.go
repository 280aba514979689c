package main

import (
	"time"

	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// FusionConfig is the `with:` section in topology.yml: the standard deviations of the
// filter.
type FusionConfig struct {
	Camera, Lidar, Gps float64 // of a measurement, in m
	Drift              float64 // added for each second of a measurement's age, in m
	Jolt               float64 // of the estimate, in m per tick
}

// Fusion estimates where the robot is. Accelerations move the estimate, and measurements
// correct it. The more exact and the newer a measurement is, the more it counts. This is
// an alpha-beta filter with a weighted mean.
type Fusion struct {
	config FusionConfig
	in     *FusionInputs // the last message of each sensor, and whether it still sends
	state  State
	placed bool      // a measurement has set the position
	fused  time.Time // time of the last correction
}

// NewFusion returns a Fusion that has no position yet.
func NewFusion(c FusionConfig) *Fusion { return &Fusion{config: c} }

// Inputs is called first, with the tracker of this instance.
func (f *Fusion) Inputs(in *FusionInputs) { f.in = in }

// The tracker keeps the messages of these inputs until the next tick.

func (f *Fusion) ReceiveFrame(Frame)   {}
func (f *Fusion) ReceivePoints(Points) {}
func (f *Fusion) ReceiveFix(Fix)       {}

// readingMax is the longest time for which one acceleration is used.
const readingMax = 100 * time.Millisecond

// ReceiveReading moves the estimate.
func (f *Fusion) ReceiveReading(r Reading) {
	if passed := f.advance(r.At); passed < readingMax { // after a longer time the acceleration says little
		f.state.Velocity = f.state.Velocity.plus(r.Acceleration.over(passed))
	}
}

// ReceiveTick corrects the estimate by the measurements.
func (f *Fusion) ReceiveTick(t topo.Tick, out *FusionSender) {
	f.advance(t.Time) // without the inertial sensor only ticks move the estimate, straight on
	seen, weight := f.seen(t.Time)
	if weight == 0 {
		return
	}
	if off := seen.minus(f.state.Position); f.placed {
		alpha := f.gain(weight)
		beta := alpha * alpha / (2 - alpha) // formula of T. R. Benedict and G. W. Bordner (1962)
		f.state.Position = f.state.Position.plus(off.times(alpha))
		f.state.Velocity = f.state.Velocity.plus(off.times(beta / t.Time.Sub(f.fused).Seconds()))
	} else {
		f.state.Position = seen
	}
	f.placed, f.fused = true, t.Time
	out.SendState(f.state)
}

// advance moves the estimate to a time and returns how much time has passed.
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

// seen is the weighted mean of the sensors' last measurements. It includes sensors that
// are silent: their measurements grow old and count less.
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

// gain is the share of the difference by which the estimate is corrected. It is large if
// the measurements are more exact than the estimate.
func (f *Fusion) gain(weight float64) float64 {
	return weight / (weight + 1/square(f.config.Jolt))
}

func square(x float64) float64 { return x * x }

// InputClosed sends the state at once if a sensor is silent, because the driver must not
// wait for the next tick. If an input is closed, the next tick sends the state. At the
// end of the program all inputs are closed.
func (f *Fusion) InputClosed(in FusionInput, out *FusionSender) {
	since, state := f.last(in)
	if f.state.Silent[in].IsZero() {
		f.state.Silent[in] = since
	}
	if state == supervise.Broken {
		out.SendState(f.state)
	}
}

// InputRecovered is called after the message that ended the silence.
func (f *Fusion) InputRecovered(in FusionInput, out *FusionSender) {
	f.state.Silent[in] = time.Time{}
	out.SendState(f.state)
}

// ProcessorRestarted is called when a sensor has a new instance.
func (f *Fusion) ProcessorRestarted(p ProcessorIndex) {
	for in, name := range sensors {
		if name == p.String() {
			f.state.Restarts[in]++
		}
	}
}

// last returns the time of a sensor's last message, and the state of its input.
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
	return f.state.At, supervise.Closed // the input of the ticks
}
