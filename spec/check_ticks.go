package spec

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// checkTicks warns of timers whose input timeout is not longer than their period.
func (b *builder) checkTicks() {
	for _, e := range b.topology.Edges {
		if e.Every > 0 && e.InputTimeout > 0 && e.InputTimeout <= e.Every {
			b.found.add(finding.Early, e.At, e.Pointer, early(&e, e.Every, ""), periodHint)
		}
	}
}

// earlyTimeouts returns a warning (TG405) for each edge whose sender sends only after ticks, if
// the input timeout of the edge is not longer than the period of the ticks.
func earlyTimeouts(t *Topology, starts func(processor int) bool) []finding.Finding {
	periods := tickPeriods(t, starts)
	var findings []finding.Finding
	for _, e := range t.Edges {
		if e.From >= 0 && e.InputTimeout > 0 && e.InputTimeout <= periods[e.From] {
			of := " of the timers that make " + quoted(e.FromText.Value) + " send"
			findings = append(findings, finding.New(finding.Early, t.File, e.At, e.Pointer, early(&e, periods[e.From], of), periodHint))
		}
	}
	return findings
}

// tickPeriods returns, for each processor that sends only because of timers, directly or through
// other processors, the shortest period of these timers. It returns 0 for a processor that is
// a source, has no inputs, or is reached from an external processor or from a cycle. Messages
// may go round a cycle without a tick.
func tickPeriods(t *Topology, starts func(processor int) bool) []time.Duration {
	other := make([]bool, len(t.Processors)) // may send without a tick
	for i, p := range t.Processors {
		other[i] = p.External || p.Machine != nil || starts(i)
	}
	for _, to := range t.deadLetters() {
		other[to] = true
	}
	next, open := make([][]int, len(t.Processors)), make([]int, len(t.Processors)) // open: number of senders without a result
	periods := make([]time.Duration, len(t.Processors))
	for _, e := range t.Edges {
		if e.From < 0 {
			periods[e.To] = shorter(periods[e.To], e.Every)
			continue
		}
		next[e.From] = append(next[e.From], e.To)
		open[e.To]++
		if e.Reply.Value != "" {
			other[e.From] = true // the reply is an input, too
		}
	}
	var ready []int
	for i, n := range open {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	decided := make([]bool, len(t.Processors)) // never true for a processor in a cycle or after one
	for ; len(ready) > 0; ready = ready[1:] {
		from := ready[0]
		decided[from] = true
		if other[from] {
			periods[from] = 0
		}
		for _, to := range next[from] {
			if periods[from] == 0 {
				other[to] = true
			} else {
				periods[to] = shorter(periods[to], periods[from])
			}
			if open[to]--; open[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	for i := range periods {
		if !decided[i] {
			periods[i] = 0
		}
	}
	return periods
}

// shorter returns the shorter of two periods. The first may be 0, which means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

const periodHint = "write three to five times the period"

func early(e *Edge, period time.Duration, of string) string {
	return fmt.Sprintf("input_timeout should be longer than the %s between two ticks%s, got %s", duration(period), of, duration(e.InputTimeout))
}
