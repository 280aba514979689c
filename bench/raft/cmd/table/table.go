package main

import (
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"

	"github.com/topogen/topogen/bench/raft"
)

// ours is the subject of the goals, and bare the subject with which it is compared.
const (
	ours      = "topogen-grpc"
	bare      = "bare"
	hashicorp = "hashicorp"
)

// allocsMax is the number of allocations that a typed proposal may take more than the
// bare loop.
const allocsMax = 2

// hashicorpTimes is the goal for the ratio to hashicorp/raft's rate, by number of
// proposers.
var hashicorpTimes = map[int]float64{1: 1.3, 64: 1.8, 1024: 2}

const (
	bareTimes       = 0.8 // of the rate of the bare loop
	localRate       = 5e6 // updates per second, without syncs
	localSyncs      = 20  // times the rate of the disk, with 1024 proposers
	electionTimeout = 3   // the median, in election timeouts, at most
	restartSeconds  = 2
	electionRounds  = 20
	restartEntries  = 1_000_000
	restartRounds   = 5
)

type table struct {
	effort   raft.Effort
	subjects []raft.Subject
	goals    [][4]string // what, goal, reached, holds
}

func (t *table) goal(what string, want, reached float64, holds bool, format string) {
	word := "yes"
	if !holds {
		word = "NO"
	}
	t.goals = append(t.goals, [4]string{what, fmt.Sprintf(format, want), fmt.Sprintf(format, reached), word})
}

func (t *table) atLeast(what string, want, reached float64, format string) {
	t.goal(what, want, reached, reached >= want, format)
}

func (t *table) atMost(what string, want, reached float64, format string) {
	t.goal(what, want, reached, reached <= want, format)
}

// rows writes columns that are aligned.
func rows(list [][]string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, row := range list {
		for _, cell := range row {
			_, _ = fmt.Fprint(w, cell, "\t")
		}
		_, _ = fmt.Fprintln(w)
	}
	return w.Flush()
}

func (t *table) printGoals() error {
	fmt.Printf("\n%s, %s/%s, %d processors, %d rounds\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), t.effort.Rounds)
	list := [][]string{{"", "goal", "reached", "holds"}}
	for _, g := range t.goals {
		list = append(list, g[:])
	}
	return rows(list)
}

// proposals compares the subjects at each number of proposers.
func (t *table) proposals(callers []int) error {
	for _, n := range callers {
		c, err := raft.Run(t.subjects, raft.Load{Callers: n, Bytes: raft.CommandBytes}, t.effort)
		if err != nil {
			return err
		}
		fmt.Printf("\n%d proposers\n\n", n)
		list := [][]string{{"", "topogen is", "commands/s", "a sync", "allocations", "CPU us"}}
		for _, s := range t.subjects {
			times := "1"
			if s.Name != ours {
				times = fmt.Sprintf("%.2fx", c.Times(ours, s.Name))
			}
			list = append(list, []string{
				s.Name, times,
				fmt.Sprintf("%.0f", c.Median(s.Name, rate)), fmt.Sprintf("%.2f", c.TimesSyncs(s.Name)),
				fmt.Sprintf("%.1f", c.Median(s.Name, allocs)), fmt.Sprintf("%.1f", c.Median(s.Name, cpu)/1e3),
			})
		}
		if err := rows(list); err != nil {
			return err
		}
		t.compare(&c)
	}
	return nil
}

func rate(s raft.Sample) float64   { return s.Rate }
func allocs(s raft.Sample) float64 { return s.Allocs }
func cpu(s raft.Sample) float64    { return s.CPU }

func (t *table) compare(c *raft.Contest) {
	if len(c.Samples[ours]) == 0 {
		return
	}
	if len(c.Samples[bare]) > 0 {
		t.atLeast(fmt.Sprintf("%d proposers: times the bare loop", c.Callers), bareTimes, c.Times(ours, bare), "%.2f")
		t.atMost(fmt.Sprintf("%d proposers: allocations", c.Callers), c.Median(bare, allocs)+allocsMax, c.Median(ours, allocs), "%.1f")
	}
	if want := hashicorpTimes[c.Callers]; want > 0 && len(c.Samples[hashicorp]) > 0 {
		t.atLeast(fmt.Sprintf("%d proposers: times hashicorp/raft", c.Callers), want, c.Times(ours, hashicorp), "%.2f")
	}
}
