package clock

import (
	"slices"
	"testing"
	"time"
)

// Results are stored here so that the calls are not optimized away.
var (
	duration time.Duration
	moment   time.Time
	over     bool
)

// BenchmarkTimers prints how many times cheaper a timer is than time.Now. The figures are
// medians of alternating runs, because the load of the computer varies.
func BenchmarkTimers(b *testing.B) {
	var timer PeriodicTimer
	var pairs StartFinishTimer
	var clock PeriodicClock
	waiting := NewWaitingTimer(time.Hour)
	reading := func(n int) {
		for range n {
			moment = time.Now()
		}
	}
	twice := func(n int) {
		for range n {
			begun := time.Now()
			moment = time.Now()
			duration += moment.Sub(begun)
		}
	}
	for _, contest := range []struct {
		name            string
		timer, readings func(calls int)
	}{
		{"PeriodicTimer", func(n int) {
			for range n {
				duration += timer.Passed()
			}
		}, reading},
		{"StartFinishTimer", func(n int) {
			for range n {
				pairs.Start()
				pairs.Finish()
			}
		}, twice},
		{"WaitingTimer", func(n int) {
			for range n {
				over = waiting.Check()
			}
		}, reading},
		{"PeriodicClock", func(n int) {
			for range n {
				moment = clock.Now()
			}
		}, reading},
	} {
		b.Run(contest.name, func(b *testing.B) {
			const calls = 1000
			var timer, readings []time.Duration
			for b.Loop() {
				begun := time.Now()
				contest.timer(calls)
				middle := time.Now()
				contest.readings(calls)
				timer = append(timer, middle.Sub(begun))
				readings = append(readings, time.Since(middle))
			}
			ours, theirs := median(timer), median(readings)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours/calls, "ns")
			b.ReportMetric(theirs/calls, "ns-time.Now")
			b.ReportMetric(theirs/ours, "times-cheaper")
		})
	}
}

func median(durations []time.Duration) float64 {
	slices.Sort(durations)
	return float64(durations[len(durations)/2])
}
