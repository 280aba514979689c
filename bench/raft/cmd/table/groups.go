package main

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/bench/raft"
)

const (
	groupsMany  = 16
	groupsIdle  = 128
	groupsTimes = 1 // of the rate of one group, at least
	idleMillis  = 1 // of processor time per second, for each idle group on three nodes together
	idleFor     = 3 * time.Second
)

// groupsCallers are numbers of proposers that fill the batches of one group, and of many.
var groupsCallers = []int{64, 1024, 16384}

// groups compares one group with many on the same three nodes, and measures idle groups.
func (t *table) groups() error {
	subjects := raft.Several(1, groupsMany)
	list := [][]string{{"callers", "1 group", fmt.Sprintf("%d groups", groupsMany), "times", "CPU µs, 1", fmt.Sprintf("CPU µs, %d", groupsMany)}}
	for _, callers := range groupsCallers {
		c, err := raft.Run(subjects, raft.Load{Callers: callers, Bytes: raft.CommandBytes}, t.effort)
		if err != nil {
			return fmt.Errorf("%d callers: %w", callers, err)
		}
		one, many := subjects[0].Name, subjects[1].Name
		times := c.Times(many, one)
		list = append(list, []string{
			fmt.Sprint(callers), fmt.Sprintf("%.0f", c.Median(one, rate)), fmt.Sprintf("%.0f", c.Median(many, rate)), fmt.Sprintf("%.2f", times),
			fmt.Sprintf("%.1f", c.Median(one, cpu)/1e3), fmt.Sprintf("%.1f", c.Median(many, cpu)/1e3),
		})
		t.atLeast(fmt.Sprintf("%d callers: %d groups, times the rate of one", callers, groupsMany), groupsTimes, times, "%.2f")
	}
	fmt.Print("\none group and many, on three nodes of one host\n\n")
	if err := rows(list); err != nil {
		return err
	}
	list = [][]string{{"idle groups", "processors", "ms of CPU a second each", "KiB each", "goroutines"}}
	effort := t.effort
	effort.Run = idleFor
	for _, n := range []int{1, groupsMany, groupsIdle} {
		r, err := raft.Idle(n, effort)
		if err != nil {
			return err
		}
		list = append(list, []string{
			fmt.Sprint(n), fmt.Sprintf("%.3f", r.CPU), fmt.Sprintf("%.2f", r.PerGroup()), fmt.Sprintf("%.0f", r.Heap/float64(n)/1024), fmt.Sprint(r.Goroutines),
		})
		if n == groupsIdle {
			t.atMost(fmt.Sprintf("%d idle groups: milliseconds of CPU a second each", n), idleMillis, r.PerGroup(), "%.2f")
		}
	}
	fmt.Print("\nidle groups, on three nodes of one host\n\n")
	return rows(list)
}
