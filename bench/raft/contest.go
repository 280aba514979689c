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
	Dir    string        // a folder on the disk that is measured
}

// warmup is how long a group runs before each sample, because the disk still has writes
// of the group before it.
const warmup = 100 * time.Millisecond

// Contest holds the results of subjects, one sample per round.
type Contest struct {
	Load
	Subjects []Subject
	Samples  map[string][]Sample // by subject
	Counts   map[string]Counts   // by subject, since it was opened; only for subjects that implement Counted
	Syncs    []float64           // the disk's own sync rate, by round
}

// Run runs the subjects in turns, in a different order in each round.
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
		rate, err := measure.SyncRate(dir, warmup)
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

// counts returns the counts of the groups that implement Counted.
func counts(subjects []Subject, groups []Group) map[string]Counts {
	all := map[string]Counts{}
	for i, s := range subjects {
		if g, ok := groups[i].(Counted); ok {
			all[s.Name] = g.Counts()
		}
	}
	return all
}

// Times is how many times as fast a subject is as another: the median of the ratios of
// the rounds.
func (c *Contest) Times(name, other string) float64 {
	var v []float64
	for i, s := range c.Samples[name] {
		v = append(v, s.Rate/c.Samples[other][i].Rate)
	}
	return measure.Median(v)
}

// TimesSyncs is the number of commands that a subject makes durable in the time of one
// sync of the disk.
func (c *Contest) TimesSyncs(name string) float64 {
	var v []float64
	for i, s := range c.Samples[name] {
		v = append(v, s.Rate/c.Syncs[i])
	}
	return measure.Median(v)
}

// Median returns the median of one figure of a subject.
func (c *Contest) Median(name string, figure func(Sample) float64) float64 {
	var v []float64
	for _, s := range c.Samples[name] {
		v = append(v, figure(s))
	}
	return measure.Median(v)
}
