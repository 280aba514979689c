// Command table runs the loads of package durable in turns, and prints their rates as
// ratios to the syncs of the disk, and which goals are reached. Run it in the folder of
// the bench module:
//
//	go run ./durable/cmd/table
//	go run ./durable/cmd/table -rounds 3 -only 'create|half' -clients 1,64
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/bench/durable"
)

// goals are the operations for each sync that create+settle over HTTP should reach, by
// the number of clients.
var goals = map[int]float64{1: 0.35, 16: 1.5, 64: 3, 256: 4}

const (
	processGoal = 3.0 // times the goal over HTTP with 64 clients, in the process
	latencyGoal = 5.0 // syncs that the 99th percentile of a create at half load may take
)

func main() {
	durable.SendIfAsked()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 7, "number of rounds, in which subjects take turns")
	duration := flag.Duration("run", 2*time.Second, "time of one subject in one round")
	dir := flag.String("dir", "", "folder on the disk to measure (default the folder of temporary files)")
	only := flag.String("only", "", "regular expression for the parts: create+settle, cycle, half load")
	list := flag.String("clients", "1,16,64,256", "numbers of clients")
	flag.Parse()
	parts, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds must be at least 1, got %d", *rounds)
	}
	clients, err := numbers(*list)
	if err != nil {
		return err
	}
	e := durable.Effort{Rounds: *rounds, Run: *duration, Dir: *dir}
	rows, err := durable.RunLoads(e, parts.MatchString, clients)
	if err != nil {
		return err
	}
	print(rows)
	if parts.MatchString("half load") {
		l, err := durable.RunHalfLoad(e)
		if err != nil {
			return err
		}
		fmt.Printf("\nhalf load over HTTP, %.0f creates/s: p50 %.1f syncs, p99 %.1f syncs (goal %.0f, %s); a sync takes %.2f ms, its p99 is %.1f syncs\n",
			l.Rate, l.P50, l.P99, latencyGoal, reached(l.P99 <= latencyGoal), l.Sync*1e3, l.Sync99)
	}
	return nil
}

func print(rows []durable.Row) {
	fmt.Printf("%-14s %-11s %8s %10s %9s %9s %11s %10s  %s\n", "load", "subject", "clients", "per s", "syncs/s", "per sync", "ops/commit", "CPU µs", "goal")
	for _, r := range rows {
		goal := ""
		want, ok := goals[r.Clients]
		switch {
		case r.Load != "create+settle" || !ok:
		case r.Subject == "http":
			goal = fmt.Sprintf("%.2f %s", want, reached(r.PerSync >= want))
		case r.Subject == "process" && r.Clients == 64:
			goal = fmt.Sprintf("%.2f %s", processGoal*want, reached(r.PerSync >= processGoal*want))
		}
		fmt.Printf("%-14s %-11s %8d %10.0f %9.0f %9.2f %11.1f %10.1f  %s\n", r.Load, r.Subject, r.Clients, r.Rate, r.Syncs, r.PerSync, r.Commit, r.PerOp/1e3, goal)
	}
}

func reached(ok bool) string {
	if ok {
		return "reached"
	}
	return "missed"
}

func numbers(list string) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-clients: must be positive numbers, got %q", text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
