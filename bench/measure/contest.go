package measure

import (
	"fmt"
	"runtime"
	"time"
)

// Contender is one way to do some work.
type Contender struct {
	Name string
	// Run sends n messages and returns when all were handled.
	Run func(n int) error
}

// Sample is the result of one run, per message.
type Sample struct {
	Nanos  float64 // of time
	CPU    float64 // nanoseconds of processor time
	Allocs float64
}

// Result holds the runs of a contender, one per round.
type Result struct {
	Contender
	N       int // messages per run
	Samples []Sample
}

// Contest runs the contenders in turns. A run takes about d. A round begins when the
// computer is idle, or after some seconds.
func Contest(contenders []Contender, rounds int, d time.Duration) ([]Result, error) {
	results := make([]Result, len(contenders))
	for i, c := range contenders {
		n, err := c.fit(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		results[i] = Result{Contender: c, N: n}
	}
	wait := patience(quietWithin)
	for range rounds {
		wait.await()
		for i := range results {
			r := &results[i]
			sample, err := r.once(r.N)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			r.Samples = append(r.Samples, sample)
		}
	}
	return results, nil
}

// fit returns how many messages take about d. It also warms up.
func (c Contender) fit(d time.Duration) (n int, err error) {
	const nMin = 1 << 13 // with fewer messages, setting up would dominate
	for n = nMin; ; n *= 4 {
		sample, err := c.once(n)
		if err != nil {
			return 0, err
		}
		if took := sample.Nanos * float64(n); took > float64(d)/4 {
			return max(nMin, int(float64(d)/sample.Nanos)), nil
		}
	}
}

// once measures one run.
func (c Contender) once(n int) (Sample, error) {
	runtime.GC() // so that this run does not collect the garbage of others
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := CPU(), time.Now()
	err := c.Run(n)
	took, used := time.Since(began), CPU()-cpu
	runtime.ReadMemStats(&after)
	per := float64(n)
	return Sample{float64(took) / per, float64(used) / per, float64(after.Mallocs-before.Mallocs) / per}, err
}

// Nanos is the median time per message, in nanoseconds.
func (r *Result) Nanos() float64 { return r.median(func(s Sample) float64 { return s.Nanos }) }

// CPU is the median processor time per message, in nanoseconds.
func (r *Result) CPU() float64 { return r.median(func(s Sample) float64 { return s.CPU }) }

// Allocs is the median number of allocations per message.
func (r *Result) Allocs() float64 { return r.median(func(s Sample) float64 { return s.Allocs }) }

func (r *Result) median(of func(Sample) float64) float64 {
	v := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		v[i] = of(s)
	}
	return Median(v)
}

// Times is how many times faster r is than other: the median of the ratios of the rounds.
func (r *Result) Times(other *Result) float64 {
	v := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		v[i] = other.Samples[i].Nanos / s.Nanos
	}
	return Median(v)
}

// TimesAtBest is the ratio of the fastest run of each.
func (r *Result) TimesAtBest(other *Result) float64 { return other.best() / r.best() }

func (r *Result) best() float64 {
	best := r.Samples[0].Nanos
	for _, s := range r.Samples {
		best = min(best, s.Nanos)
	}
	return best
}

// SteadyAllocs is the number of allocations per message without those for setting up: the
// difference between a long and a short run.
func (c Contender) SteadyAllocs() (float64, error) {
	const short, long, tries = 200_000, 1_200_000, 3
	var v []float64
	for range tries {
		few, err := c.once(short)
		if err != nil {
			return 0, err
		}
		many, err := c.once(long)
		if err != nil {
			return 0, err
		}
		v = append(v, (many.Allocs*long-few.Allocs*short)/(long-short))
	}
	return Median(v), nil
}
