package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// shrink removes steps as long as the sequence still has a difference.
func shrink(s sequence) (sequence, *divergence) {
	found := compare(s, coverage{})
	s.steps = s.steps[:found.step+1]
	for size := len(s.steps) / 2; size > 0; {
		smaller := false
		for i := 0; i+size <= len(s.steps); {
			candidate := s
			candidate.steps = append(append([]step{}, s.steps[:i]...), s.steps[i+size:]...)
			if d := compare(candidate, coverage{}); d != nil {
				s, found, smaller = candidate, d, true
				s.steps = s.steps[:min(d.step+1, len(s.steps))]
			} else {
				i += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return shrinkTime(s, found)
}

// shrinkTime carries out steps at the time of the step before them.
func shrinkTime(s sequence, found *divergence) (sequence, *divergence) {
	for i := 1; i < len(s.steps); i++ {
		candidate := s
		candidate.steps = slices.Clone(s.steps)
		candidate.steps[i].wall, candidate.steps[i].run = s.steps[i-1].wall, s.steps[i-1].run
		if d := compare(candidate, coverage{}); d != nil && d.step == found.step {
			s, found = candidate, d
		}
	}
	return s, found
}

// transcript returns a sequence with its difference.
func transcript(s sequence, d *divergence) string {
	var b strings.Builder
	fmt.Fprintf(&b, "retry timeout %d ms, at most %d unblocks, at most %d missed occurrences, strict: %v, debug: %v\n", s.config.RetryTimeout, s.config.UnblocksMax, s.config.MissedMax, s.config.Strict, s.debug)
	fmt.Fprintf(&b, "%7s %7s\n", "wall", "run")
	server := New(s.config)
	committed := server.Clone()
	at := cursors{}
	for i, step := range s.steps {
		fmt.Fprintln(&b, step)
		at.before(step, s.steps[max(0, i-1)])
		switch step.action {
		case commit:
			committed = server.Clone()
		case crash:
			server = committed.Clone()
		case tick:
			printSent(&b, server.Tick(step.wall, step.run))
		case deliver:
			server.Delivered(step.promise, step.address)
		case request:
			response, sent := server.Apply(step.wall, step.run, step.body(at))
			at.after(step, response)
			if i < d.step {
				fmt.Fprintf(&b, "%17s%s\n", "", canonical(response))
				printSent(&b, sent)
			}
		}
	}
	fmt.Fprintf(&b, "difference: %s\n", d.subject)
	oracle, core := strings.Split(d.oracle, "\n"), strings.Split(d.core, "\n")
	for _, line := range oracle {
		if !slices.Contains(core, line) {
			fmt.Fprintf(&b, "%17s%s\n", "oracle  ", line)
		}
	}
	for _, line := range core {
		if !slices.Contains(oracle, line) {
			fmt.Fprintf(&b, "%17s%s\n", "core  ", line)
		}
	}
	return b.String()
}

func printSent(b *strings.Builder, sent []Sent) {
	for _, s := range sent {
		fmt.Fprintf(b, "%17s%s\n", "-> ", line(s.Address, s.Message, s.Dropped))
	}
}
