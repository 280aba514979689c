package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// local measures a state machine on one disk, without peers.
func (t *table) local() error {
	results, err := raft.RunAlone(t.effort)
	if err != nil {
		return err
	}
	fmt.Print("\nalone, on one disk\n\n")
	list := [][]string{{"sync", "updates come as", "updates/s", "a second of CPU", "a sync"}}
	best := 0.0
	for _, r := range results {
		list = append(list, []string{r.Sync.String(), r.Way, fmt.Sprintf("%.0f", r.Rate), fmt.Sprintf("%.0f", r.CPURate), fmt.Sprintf("%.1f", r.TimesOwn)})
		if r.Sync == wal.None {
			best = max(best, r.Rate)
		} else if r.Way == "callers-1024" {
			t.atLeast("sync always, 1024 callers: updates for one sync of the disk", localSyncs, r.TimesOwn, "%.1f")
		}
	}
	t.atLeast("sync none: million updates a second", localRate/1e6, best/1e6, "%.2f")
	return rows(list)
}

// election measures elections after the leader was killed.
func (t *table) election() (err error) {
	dir, err := os.MkdirTemp(t.effort.Dir, "raft")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	timeouts, err := raft.Elections(dir, electionRounds)
	if err != nil {
		return err
	}
	median := measure.Median(timeouts)
	fmt.Printf("\n%d elections, until an update is applied: median %.2f timeouts, %.2f to %.2f\n", len(timeouts), median, timeouts[0], timeouts[len(timeouts)-1])
	t.atMost("a leader dies: election timeouts until an update is applied", electionTimeout, median, "%.2f")
	return nil
}

// restart measures the start with a long log.
func (t *table) restart() (err error) {
	dir, err := os.MkdirTemp(t.effort.Dir, "raft")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	log := filepath.Join(dir, "log")
	if err := raft.MakeLog(log, restartEntries); err != nil {
		return err
	}
	var seconds, cpu []float64
	for range min(t.effort.Rounds, restartRounds) {
		before := measure.CPU()
		took, err := raft.Restart(log, restartEntries)
		if err != nil {
			return err
		}
		seconds, cpu = append(seconds, took.Seconds()), append(cpu, (measure.CPU()-before).Seconds())
	}
	fmt.Printf("\nrestart with %d entries behind a snapshot: %.2f s, %.2f s of CPU\n", restartEntries, measure.Median(seconds), measure.Median(cpu))
	t.atMost("restart with a million entries: seconds", restartSeconds, measure.Median(seconds), "%.2f")
	return nil
}
