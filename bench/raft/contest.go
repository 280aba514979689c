package raft

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Effort says how long a contest may take.
type Effort struct {
	Rounds int
	Run    time.Duration // of one subject in one round
	Dir    string        // on the disk that is measured
}

// warm is how long a group runs before each sample: the one before it has left its
// writes to the disk.
const warmup = 100 * time.Millisecond

// Contest is what subjects did, one sample a round.
type Contest struct {
	Load
	Subjects []Subject
	Samples  map[string][]Sample // by subject
	Counts   map[string]Counts   // by subject, since it was opened; none for a subject that does not count
	Syncs    []float64           // the disk's own rate, one a round
}

// Run has the subjects take turns, in another order each round.
func Run(subjects []Subject, l Load, e Effort) (c Contest, err error) {
	c = Contest{Load: l, Subjects: subjects, Samples: map[string][]Sample{}, Counts: map[string]Counts{}}
	dir, err := os.MkdirTemp(e.Dir, "raft")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	groups := make([]Group, len(subjects))
	for i, s := range subjects {
		folder := filepath.Join(dir, s.Name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return c, err
		}
		if groups[i], err = s.Open(folder, l); err != nil {
			return c, fmt.Errorf("%s: %w", s.Name, err)
		}
		defer func() { err = errors.Join(err, groups[i].Close()) }()
	}
	before := counts(subjects, groups)
	for range e.Rounds {
		rate, err := SyncRate(dir, warmup)
		if err != nil {
			return c, err
		}
		c.Syncs = append(c.Syncs, rate)
		for _, i := range rand.Perm(len(subjects)) {
			name := subjects[i].Name
			if _, err := DriveFor(groups[i], l.Callers, warmup); err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			sample, err := DriveFor(groups[i], l.Callers, e.Run)
			if err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			c.Samples[name] = append(c.Samples[name], sample)
		}
	}
	for name, after := range counts(subjects, groups) {
		c.Counts[name] = Counts{Dropped: after.Dropped - before[name].Dropped, Term: after.Term - before[name].Term}
	}
	return c, nil
}

// counts are those of the groups that count.
func counts(subjects []Subject, groups []Group) map[string]Counts {
	all := map[string]Counts{}
	for i, s := range subjects {
		if g, ok := groups[i].(Counted); ok {
			all[s.Name] = g.Counts()
		}
	}
	return all
}

// Times is how many times as fast a subject is as another: the median of the
// rounds' ratios.
func (c *Contest) Times(name, other string) float64 {
	var v []float64
	for i, s := range c.Samples[name] {
		v = append(v, s.Rate/c.Samples[other][i].Rate)
	}
	return measure.Median(v)
}

// TimesSyncs is how many commands a subject makes durable for one that the disk
// can by itself.
func (c *Contest) TimesSyncs(name string) float64 {
	var v []float64
	for i, s := range c.Samples[name] {
		v = append(v, s.Rate/c.Syncs[i])
	}
	return measure.Median(v)
}

// Median of one figure of a subject.
func (c *Contest) Median(name string, figure func(Sample) float64) float64 {
	var v []float64
	for _, s := range c.Samples[name] {
		v = append(v, figure(s))
	}
	return measure.Median(v)
}
