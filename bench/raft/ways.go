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

// Way is how updates come to a machine on one disk.
type Way struct {
	Name       string
	inTopology bool
	feed       func(a *Alone, n int) error
}

const (
	aloneCallers = 1024
	fed          = 100_000 // updates at once, of which the last wait for nobody: a few thousand of them
)

// Ways are all.
func Ways() []Way {
	return []Way{
		{"callers-1024", false, func(a *Alone, n int) error { return Drive(a, aloneCallers, n) }},
		{"proposals", true, (*Alone).FeedProposals},
		{"updates-1", true, func(a *Alone, n int) error { return a.FeedUpdates(n, 1) }},
		{"updates-256", true, func(a *Alone, n int) error { return a.FeedUpdates(n, 256) }},
	}
}

// AloneResult is what one way reached, one figure a round.
type AloneResult struct {
	Sync     wal.Sync
	Way      string
	Rate     float64 // updates a second
	CPURate  float64 // updates a second of processor time
	TimesOwn float64 // what the disk syncs by itself in that time
}

// RunAlone has all ways take turns, in two modes of sync.
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
		own, err := SyncRate(dir, warmup)
		if err != nil {
			return err
		}
		cpu, began, n := measure.CPU(), time.Now(), 0
		for ; time.Since(began) < e.Run; n += fed {
			if err := way.feed(a, fed); err != nil {
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
		err = fmt.Errorf("%d updates were applied, of %d", applied, total)
	}
	return err
}
