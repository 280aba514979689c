package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/topo"
)

// Report exists once in the cluster. It prints where everything runs and the rate, and
// compares what the counters have counted with what the sources have sent.
type Report struct {
	out      io.Writer
	view     func() *cluster.View
	began    time.Time
	printed  time.Time   // the last rate
	before   int         // counted at that time
	progress map[int]int // by counter

	sent, counted     map[string]int // by name
	sources, counters int            // that have reported
	wrong             int
}

func newReport(out io.Writer, view func() *cluster.View) *Report {
	return &Report{out: out, view: view, progress: make(map[int]int), sent: make(map[string]int), counted: make(map[string]int)}
}

// Init prints where everything runs.
func (r *Report) Init() error {
	r.began = time.Now()
	r.printed = r.began
	return printPlaces(r.out, r.view())
}

// printPlaces prints how many instances of each processor each node runs.
func printPlaces(out io.Writer, v *cluster.View) error {
	if v == nil {
		_, err := fmt.Fprintln(out, "one process runs everything")
		return err
	}
	type place struct{ processor, node string }
	instances := make(map[place]int)
	nodes := make(map[string]int)
	for c := range v.Containers() {
		instances[place{c.Processor, c.Node}]++
		nodes[c.Node]++
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "instances\t")
	names := slices.Sorted(maps.Keys(nodes))
	for _, node := range names {
		fmt.Fprint(w, node, "\t")
	}
	fmt.Fprintln(w)
	for _, p := range v.Processors {
		fmt.Fprint(w, p.Name, "\t")
		for _, node := range names {
			fmt.Fprint(w, instances[place{p.Name, node}], "\t")
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// ReceiveProgress notes how far a counter is.
func (r *Report) ReceiveProgress(m Progress) { r.progress[m.Counter] = m.Counted }

// ReceiveTick prints the rate of all counters together.
func (r *Report) ReceiveTick(topo.Tick) {
	now, counted := time.Now(), 0
	for _, n := range r.progress {
		counted += n
	}
	rate := float64(counted-r.before) / now.Sub(r.printed).Seconds()
	fmt.Fprintf(r.out, "%6.1f s  %8.0f messages/s, %d counted\n", now.Sub(r.began).Seconds(), rate, counted)
	r.printed, r.before = now, counted
}

// ReceiveSent adds what a source has sent.
func (r *Report) ReceiveSent(m Sent) {
	r.sources++
	for name, n := range m.Counts {
		r.sent[name] += n
	}
}

// ReceiveTotal adds what a counter has counted.
func (r *Report) ReceiveTotal(m Total) {
	r.counters++
	r.wrong += m.Wrong
	for name, n := range m.Counts {
		r.counted[name] += n
	}
}

// Finish compares. It is called after the last messages of all sources and counters.
func (r *Report) Finish() error {
	sent, counted := sum(r.sent), sum(r.counted)
	took := time.Since(r.began)
	fmt.Fprintf(r.out, "%d messages in %.1f s, %.0f/s\n", counted, took.Seconds(), float64(counted)/took.Seconds())
	fmt.Fprintf(r.out, "%d sources have sent %d messages with %d names; %d counters have counted %d\n",
		r.sources, sent, len(r.sent), r.counters, counted)
	names := maps.Clone(r.sent)
	maps.Copy(names, r.counted)
	maps.DeleteFunc(names, func(name string, _ int) bool { return r.counted[name] == r.sent[name] })
	if len(names) > 0 || r.wrong > 0 {
		return fmt.Errorf("wrong counts of names: %d; messages that came twice or after a missing one: %d", len(names), r.wrong)
	}
	if _, err := fmt.Fprintln(r.out, "each name was counted as often as it was sent: nothing is missing, nothing came twice or out of order"); err != nil {
		return errors.Join(errors.New("the result cannot be printed"), err)
	}
	return nil
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
