package suite

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Contest is a section whose rows are contenders; the first is topogen's.
type Contest struct {
	Name       string
	Contenders []measure.Contender

	title, note string
	unit        string // the unit that a run counts
	goals       []goal
	limits      []goal
	costs       []goal // limits of the processor time
	steady      bool   // handling a message must not allocate
	long        int    // a run takes this many times as long as usual; 0: once
}

// goal is a ratio between the first contender and another: at least so many times as fast
// or, in limits and costs, at most so many times as long.
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
	for _, g := range c.costs {
		s.Claims = append(s.Claims, atMost(g.what, g.times, ours.CPU()/named(results, g.peer).CPU()))
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
