package raft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// Way is a way in which updates reach a state machine on one disk.
type Way struct {
	Name       string
	inTopology bool
	feed       func(a *Alone, n int) error
}

const (
	aloneCallers = 1024
	batch        = 100_000 // updates per call: so many that the wait for the last few thousand hardly counts
)

// Ways returns all ways.
func Ways() []Way {
	return []Way{
		{"callers-1024", false, func(a *Alone, n int) error { return Drive(a, aloneCallers, n) }},
		{"proposals", true, (*Alone).FeedProposals},
		{"updates-1", true, func(a *Alone, n int) error { return a.FeedUpdates(n, 1) }},
		{"updates-256", true, func(a *Alone, n int) error { return a.FeedUpdates(n, 256) }},
	}
}

// AloneResult is the result of one way, with the medians over the rounds.
type AloneResult struct {
	Sync     wal.Sync
	Way      string
	Rate     float64 // updates per second
	CPURate  float64 // updates per second of processor time
	TimesOwn float64 // relative to the number of syncs of the disk in the same time
}

// RunAlone runs all ways in turns, in two sync modes.
func RunAlone(e Effort) (results []AloneResult, err error) {
	dir, err := os.MkdirTemp(e.Dir, "raft")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, sync := range []wal.Sync{wal.None, wal.Always} {
		for _, way := range Ways() {
			r := AloneResult{Sync: sync, Way: way.Name}
			if err := r.run(filepath.Join(dir, fmt.Sprint(sync, way.Name)), way, e); err != nil {
				return nil, fmt.Errorf("%v, %s: %w", sync, way.Name, err)
			}
			results = append(results, r)
		}
	}
	return results, nil
}

func (r *AloneResult) run(dir string, way Way, e Effort) (err error) {
	a, err := OpenAlone(dir, r.Sync, way.inTopology)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	var rates, cpus, times []float64
	total := 0
	for range e.Rounds {
		own, err := measure.SyncRate(dir, warmup)
		if err != nil {
			return err
		}
		cpu, began, n := measure.CPU(), time.Now(), 0
		for ; time.Since(began) < e.Run; n += batch {
			if err := way.feed(a, batch); err != nil {
				return err
			}
		}
		rate := float64(n) / time.Since(began).Seconds()
		rates, times = append(rates, rate), append(times, rate/own)
		cpus = append(cpus, float64(n)/(measure.CPU()-cpu).Seconds())
		total += n
	}
	r.Rate, r.CPURate, r.TimesOwn = measure.Median(rates), measure.Median(cpus), measure.Median(times)
	applied, err := a.Applied()
	if err == nil && applied != uint64(total) {
		err = fmt.Errorf("%d updates were applied, want %d", applied, total)
	}
	return err
}
