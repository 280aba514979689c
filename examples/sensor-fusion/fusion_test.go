package main

import (
	"math"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// begin is the time at which the tests begin.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return begin.Add(d) }

// newTestFusion returns a Fusion without a topology: a test sets the content of its
// tracker.
func newTestFusion() *Fusion {
	f := NewFusion(FusionConfig{Camera: 0.3, Lidar: 0.1, Gps: 1.5, Drift: 1, Jolt: 0.1})
	f.Inputs(new(FusionInputs))
	return f
}

func near(t *testing.T, what string, got, want Vector) {
	t.Helper()
	if got.minus(want).length() > 1e-9 {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestTheMoreExactCountsMore(t *testing.T) {
	f := newTestFusion()
	f.in.Frame.Set(Frame{begin, Vector{0, 0}})
	f.in.Points.Set(Points{begin, Vector{1, -2}})
	place, weight := f.seen(begin)
	near(t, "the place", place, Vector{0.9, -1.8}) // weights 1/0.09 and 1/0.01
	if math.Abs(weight-(1/0.09+1/0.01)) > 1e-9 {
		t.Errorf("the weight is %v", weight)
	}
}

// TestTheOlderCountsLess: an old measurement is moved to the present, and counts less.
func TestTheOlderCountsLess(t *testing.T) {
	f := newTestFusion()
	f.state.Velocity = Vector{1, 0}
	f.in.Points.Set(Points{begin, Vector{0, 0}})
	f.in.Fix.Set(Fix{after(2 * time.Second), Vector{10, 0}})
	place, _ := f.seen(after(2 * time.Second))
	old, new := 1/(0.01+4), 1/(1.5*1.5)
	near(t, "the place", place, Vector{(2*old + 10*new) / (old + new), 0})
}

func TestAccelerationsCarryOn(t *testing.T) {
	f := newTestFusion()
	r := RecordFusion()
	f.in.Points.Set(Points{begin, Vector{3, 4}})
	f.ReceiveTick(topo.Tick{Time: begin}, r.Sender())
	for i := range 100 { // 2 m/s² for a second
		f.ReceiveReading(Reading{after(time.Duration(i+1) * 10 * time.Millisecond), Vector{2, 0}})
	}
	near(t, "the velocity", f.state.Velocity, Vector{2, 0})
	near(t, "the place", f.state.Position, Vector{3.99, 4}) // steps of 10 ms, each with the velocity before it
	if len(r.State) != 1 || r.State[0].Position != (Vector{3, 4}) {
		t.Errorf("sent %v", r.State)
	}
}

// TestMeasurementsPull: a tick moves the estimate a part of the way to the measurement.
func TestMeasurementsPull(t *testing.T) {
	const period = 50 * time.Millisecond
	f := newTestFusion()
	r := RecordFusion()
	f.in.Points.Set(Points{begin, Vector{0, 0}})
	f.ReceiveTick(topo.Tick{Time: begin}, r.Sender())
	f.in.Points.Set(Points{after(period), Vector{1, 0}})
	f.ReceiveTick(topo.Tick{Time: after(period)}, r.Sender())
	// The lidar is as exact as the estimate: the position is corrected by half of the
	// difference, and the velocity by a sixth of it per period.
	near(t, "the place", r.State[1].Position, Vector{0.5, 0})
	near(t, "the velocity", r.State[1].Velocity, Vector{1.0 / 6 / period.Seconds(), 0})
}

func TestNothingIsSentBeforeSomethingIsSeen(t *testing.T) {
	f := newTestFusion()
	r := RecordFusion()
	f.ReceiveReading(Reading{begin, Vector{1, 1}})
	f.ReceiveTick(topo.Tick{Time: begin}, r.Sender())
	if len(r.State) != 0 {
		t.Errorf("sent %v", r.State)
	}
}

// TestSilence checks what is sent when inputs break, recover and close.
func TestSilence(t *testing.T) {
	f := newTestFusion()
	r := RecordFusion()
	last := func() *State { return &r.State[len(r.State)-1] }

	f.in.Fix.Set(Fix{begin, Vector{}})
	f.in.Fix.Became(supervise.Broken)
	f.InputClosed(FusionInputFix, r.Sender())
	if m := last(); m.Mode() != Degraded || !m.Silent[FusionInputFix].Equal(begin) {
		t.Errorf("without gps: %+v", m)
	}
	f.in.Reading.Set(Reading{At: after(time.Second)})
	f.in.Reading.Became(supervise.Broken)
	f.InputClosed(FusionInputReading, r.Sender())
	if m := last(); m.Mode() != Emergency || !m.Silent[FusionInputReading].Equal(after(time.Second)) {
		t.Errorf("without imu: %+v", m)
	}
	f.in.Reading.Set(Reading{At: after(2 * time.Second)})
	f.InputRecovered(FusionInputReading, r.Sender())
	if m := last(); m.Mode() != Degraded {
		t.Errorf("after imu recovered: %+v", m)
	}
	f.ProcessorRestarted(ProcessorGps)
	f.in.Fix.Set(Fix{after(3 * time.Second), Vector{}})
	f.InputRecovered(FusionInputFix, r.Sender())
	if m := last(); m.Mode() != Healthy || m.Restarts[FusionInputFix] != 1 {
		t.Errorf("after all recovered: %+v", m)
	}
	f.in.Frame.Set(Frame{after(3 * time.Second), Vector{}})
	f.in.Frame.Became(supervise.Closed)
	f.InputClosed(FusionInputFrame, r.Sender())
	if len(r.State) != 4 {
		t.Errorf("at the end: sent %+v", last())
	}
	f.ReceiveTick(topo.Tick{Time: after(4 * time.Second)}, r.Sender())
	if m := last(); m.Mode() != Degraded || !m.Silent[FusionInputFrame].Equal(after(3*time.Second)) {
		t.Errorf("after the camera closed: %+v", m)
	}
}
