package durable

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/topogen/topogen/bench/measure"
)

// Clients are the numbers of clients in the goals.
var Clients = []int{1, 16, 64, 256}

// HalfClients is the number of clients whose rate is halved for the latency.
const HalfClients = 64

// Effort is how long to measure.
type Effort struct {
	Rounds int
	Run    time.Duration // of one subject in one round
	Dir    string        // on the disk to measure
}

// A Row is the result of a load on a subject: medians over the rounds.
type Row struct {
	Load    string
	Subject string
	Clients int
	Run
	PerSync float64 // Rate / Syncs
}

// A load is what clients do.
type load struct {
	name string
	run  func(s *System, clients int) func(more func() bool) (int, error)
}

// RunLoads runs all subjects with each number of clients, in turns.
func RunLoads(e Effort, names func(load string) bool, clients []int) (rows []Row, err error) {
	dir, err := os.MkdirTemp(e.Dir, "durable")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	type entry struct {
		row    Row
		system *System
		run    func(more func() bool) (int, error)
		runs   []Run
	}
	var entries []*entry
	for _, subject := range Subjects() {
		folder, err := os.MkdirTemp(dir, subject.Name)
		if err != nil {
			return nil, err
		}
		system, err := subject.Open(folder)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, system.Close()) }()
		cycles, err := system.OpenCycles()
		if err != nil {
			return nil, err
		}
		defer cycles.Close()
		loads := []load{
			{"create+settle", func(s *System, clients int) func(func() bool) (int, error) {
				return func(more func() bool) (int, error) { return s.CreateSettle(clients, more) }
			}},
			{"cycle", func(_ *System, clients int) func(func() bool) (int, error) {
				return func(more func() bool) (int, error) { return cycles.Run(clients, more) }
			}},
		}
		for _, l := range loads {
			for _, n := range clients {
				if names(l.name) {
					entries = append(entries, &entry{row: Row{Load: l.name, Subject: subject.Name, Clients: n}, system: system, run: l.run(system, n)})
				}
			}
		}
	}
	for range e.Rounds {
		for _, x := range entries {
			r, err := x.system.Measure(dir, e.Run, x.run)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %d clients: %w", x.row.Load, x.row.Subject, x.row.Clients, err)
			}
			x.runs = append(x.runs, r)
		}
	}
	for _, x := range entries {
		x.row.Run, x.row.PerSync = medians(x.runs)
		rows = append(rows, x.row)
	}
	return rows, nil
}

func medians(runs []Run) (m Run, perSync float64) {
	of := func(f func(Run) float64) float64 {
		var v []float64
		for _, r := range runs {
			v = append(v, f(r))
		}
		return measure.Median(v)
	}
	m = Run{
		Rate: of(func(r Run) float64 { return r.Rate }), Syncs: of(func(r Run) float64 { return r.Syncs }),
		PerOp: of(func(r Run) float64 { return r.PerOp }), Commit: of(func(r Run) float64 { return r.Commit }),
	}
	return m, of(func(r Run) float64 { return r.Rate / r.Syncs })
}

// A Latency is the result of creates at half load.
type Latency struct {
	Rate     float64 // creates per second
	P50, P99 float64 // in syncs of the disk, medians over the rounds
	Sync     float64 // seconds
	Sync99   float64 // 99th percentile of a sync, in syncs
}

// RunHalfLoad measures the latency of creates over HTTP at half of the rate that
// HalfClients clients reach.
func RunHalfLoad(e Effort) (l Latency, err error) {
	dir, err := os.MkdirTemp(e.Dir, "durable")
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := Subjects()[0].Open(dir)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var rates, p50, p99, syncs, sync99 []float64
	for range e.Rounds {
		full, err := s.Measure(dir, e.Run, func(more func() bool) (int, error) {
			return loop(HalfClients, more, func(int) error {
				_, err := do(ctx, s, create(newID()))
				return err
			})
		})
		if err != nil {
			return l, err
		}
		latencies, err := s.Creates(full.Rate/2, e.Run)
		if err != nil {
			return l, err
		}
		after, err := measure.Syncs(dir, e.Run/2)
		if err != nil {
			return l, err
		}
		sync := 1 / full.Syncs
		sync99 = append(sync99, measure.Percentile(after, 0.99)/sync)
		rates, syncs = append(rates, full.Rate/2), append(syncs, sync)
		p50 = append(p50, measure.Percentile(latencies, 0.5)/sync)
		p99 = append(p99, measure.Percentile(latencies, 0.99)/sync)
	}
	return Latency{measure.Median(rates), measure.Median(p50), measure.Median(p99), measure.Median(syncs), measure.Median(sync99)}, nil
}
