package spec

import (
	"fmt"
	"time"
)

const doublingsMax = 16 // of a delay, as the supervisor has it

// checkRestarts warns of limits of restarts that do not limit.
func (b *builder) checkRestarts() {
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		r := &p.Restart
		_, grouped := b.groupOf[i] // whose intensity is a limit
		constant := r.Delay > 0 && r.MaxDelay == r.Delay
		switch {
		case !r.Given || r.Policy == Never:
		case r.MaxRestarts > 0:
			if r.unreached() {
				b.found.add(codeNotReached, r.At, r.Pointer, fmt.Sprintf("the delays of %d restarts are %.6g s or more, and with each window of %v counting begins anew: max_restarts is never reached",
					r.MaxRestarts, r.least(), r.Window), "write a longer window, or a lower max_delay")
			}
		case grouped || constant:
		case r.Delay == 0:
			b.found.add(codeUnlimited, r.At, r.Pointer, "restarts of "+quoted(p.Name.Value)+" have neither a limit nor a delay", "write max_restarts and window, or a delay and window")
		case r.Window == 0:
			b.found.add(codeUnlimited, r.At, r.Pointer, "unlimited restarts without a window: the delay of "+quoted(p.Name.Value)+" grows and never begins anew", "write a window")
		}
	}
}

// unreached reports whether so many restarts take longer than the window in which
// they are counted.
func (r *Restart) unreached() bool { return r.Window > 0 && r.least() > r.Window.Seconds() }

// least is the sum, in seconds, of the shortest delays that max_restarts restarts
// can have.
func (r *Restart) least() float64 {
	var sum float64
	delay := r.Delay.Seconds()
	for k := 1; k <= r.MaxRestarts; k++ {
		if r.MaxDelay > 0 {
			delay = min(delay, r.MaxDelay.Seconds())
		}
		if k > doublingsMax { // the others are the same
			sum += delay * float64(r.MaxRestarts-doublingsMax)
			break
		}
		sum += delay
		delay *= 2
	}
	return sum * (1 - r.Jitter)
}

// checkTicks warns of timers whose own timeout passes between two ticks.
func (b *builder) checkTicks() {
	for _, e := range b.topology.Edges {
		if e.Every > 0 && e.InputTimeout > 0 && e.InputTimeout <= e.Every {
			b.found.add(codeEarly, e.At, e.Pointer, early(&e, e.Every, ""), earlyHint)
		}
	}
}

// earlyTimeouts returns a warning (TG405) for each edge whose timeout passes
// between two ticks of the only timers that make its sender send.
func earlyTimeouts(t *Topology, starts func(processor int) bool) []Finding {
	const other = -1                                    // has an input that is no timer
	fastest := make([]time.Duration, len(t.Processors)) // the shortest period of the timers of each; 0: no input
	for _, e := range t.Edges {
		if e.Reply.Value != "" && e.From >= 0 {
			fastest[e.From] = other
		}
		switch period := fastest[e.To]; {
		case e.Every == 0:
			fastest[e.To] = other
		case period == 0 || period > e.Every:
			fastest[e.To] = e.Every
		}
	}
	for _, to := range t.deadLetters() {
		fastest[to] = other
	}
	var findings []Finding
	for _, e := range t.Edges {
		if e.From >= 0 && e.InputTimeout > 0 && e.InputTimeout <= fastest[e.From] && !starts(e.From) {
			findings = append(findings, NewFinding(codeEarly, t.File, e.At, e.Pointer, early(&e, fastest[e.From], " of "+quoted(e.FromText.Value)), earlyHint))
		}
	}
	return findings
}

const earlyHint = "write three to five times the period"

func early(e *Edge, period time.Duration, of string) string {
	return fmt.Sprintf("the input_timeout of %v passes between two ticks%s, which come every %v", e.InputTimeout, of, period)
}
