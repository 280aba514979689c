package suite

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Contest is a section whose rows are contenders; the first is ours.
type Contest struct {
	Name       string
	Contenders []measure.Contender

	title, note string
	unit        string // of which a run has so many
	goals       []goal
	limits      []goal
	steady      bool // nothing is to be allocated for a message
	long        int  // a run takes so many times as long as others; 0: once
}

// goal is a ratio of the first contender to another: so many times as fast at
// least, or, in limits, so many times as long at most.
type goal struct {
	what  string
	times float64
	peer  string
}

func (c Contest) measure(e Effort) (Section, error) {
	results, err := measure.Contest(c.Contenders, e.Rounds, e.Run*time.Duration(max(c.long, 1)))
	if err != nil {
		return Section{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	s := Section{Title: c.title, Note: c.note, Columns: []string{"", "first row against this row", "fastest rounds", "allocations per " + c.unit, "ns per " + c.unit, "CPU ns per " + c.unit}}
	ours := &results[0]
	for i := range results {
		r := &results[i]
		times, best := "1", "1"
		if i > 0 {
			times, best = fmt.Sprintf("**%.1f×** as fast", ours.Times(r)), fmt.Sprintf("%.1f×", ours.TimesAtBest(r))
		}
		s.Rows = append(s.Rows, []string{r.Name, times, best, fmt.Sprintf("%.3f", r.Allocs()), fmt.Sprintf("%.1f", r.Nanos()), fmt.Sprintf("%.1f", r.CPU())})
	}
	for _, g := range c.goals {
		s.Claims = append(s.Claims, timesClaim(g.what, g.times, results, g.peer))
	}
	for _, g := range c.limits {
		s.Claims = append(s.Claims, longClaim(g.what, g.times, results, g.peer))
	}
	if c.steady {
		allocs, err := ours.SteadyAllocs()
		if err != nil {
			return s, err
		}
		s.Claims = append(s.Claims, Claim{c.Name + ": allocations per " + c.unit, "0", fmt.Sprintf("%.3f", max(allocs, 0)), allocs < 0.0005})
	}
	return s, nil
}
