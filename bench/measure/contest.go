package measure

import (
	"fmt"
	"runtime"
	"time"
)

// Contender is one way to do some work.
type Contender struct {
	Name string
	// Run moves n messages and returns when all were handled.
	Run func(n int) error
}

// Sample is one run, per message.
type Sample struct {
	Nanos  float64 // of time
	CPU    float64 // nanoseconds of processor time
	Allocs float64
}

// Result holds a contender's runs, one a round.
type Result struct {
	Contender
	N       int // messages in a run
	Samples []Sample
}

// Contest has the contenders take turns. A run takes about d. A round begins when
// the machine is quiet, if it is within some seconds.
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

// fit finds how many messages take about d; it also warms up.
func (c Contender) fit(d time.Duration) (n int, err error) {
	const nMin = 1 << 13 // fewer, and setting up is all there is
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

// once times one run.
func (c Contender) once(n int) (Sample, error) {
	runtime.GC() // what others left behind is not this one's to collect
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := CPU(), time.Now()
	err := c.Run(n)
	took, used := time.Since(began), CPU()-cpu
	runtime.ReadMemStats(&after)
	per := float64(n)
	return Sample{float64(took) / per, float64(used) / per, float64(after.Mallocs-before.Mallocs) / per}, err
}

// Nanos, CPU and Allocs are medians.
func (r *Result) Nanos() float64 { return r.median(func(s Sample) float64 { return s.Nanos }) }

// CPU is the processor time of a message, in nanoseconds.
func (r *Result) CPU() float64 { return r.median(func(s Sample) float64 { return s.CPU }) }

// Allocs is the number of allocations a message.
func (r *Result) Allocs() float64 { return r.median(func(s Sample) float64 { return s.Allocs }) }

func (r *Result) median(of func(Sample) float64) float64 {
	v := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		v[i] = of(s)
	}
	return Median(v)
}

// Times is how many times faster r is than other: the median over the rounds.
func (r *Result) Times(other *Result) float64 {
	v := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		v[i] = other.Samples[i].Nanos / s.Nanos
	}
	return Median(v)
}

// TimesAtBest compares the least disturbed run of each.
func (r *Result) TimesAtBest(other *Result) float64 { return other.best() / r.best() }

func (r *Result) best() float64 {
	best := r.Samples[0].Nanos
	for _, s := range r.Samples {
		best = min(best, s.Nanos)
	}
	return best
}

// SteadyAllocs is the number of allocations a message in a long run beyond those
// of a short one, which sets up as much.
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
