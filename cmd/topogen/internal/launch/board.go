package launch

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// board is the status of the nodes: a line for each node, and their sum.
type board struct {
	mu      sync.Mutex
	name    string // of the topology
	started time.Time
	rows    []row
}

type row struct {
	node      string
	state     string
	instances int
	recent    window
}

func newBoard(name string, nodes []string, now time.Time) *board {
	b := &board{name: name, started: now}
	for _, node := range nodes {
		b.rows = append(b.rows, row{node: node, state: "starting"})
	}
	return b
}

// report records a line of a node: its state, its instances and its figures. It returns
// the status, or "" if the line is malformed. The line may contain anything, because the
// program contains user code.
func (b *board) report(i int, line string, now time.Time) string {
	state, rest, _ := strings.Cut(line, " ")
	count, rest, _ := strings.Cut(rest, " ")
	instances, err := strconv.Atoi(count)
	f, ok := parseFigures(rest, now)
	if err != nil || !ok || !word(state) {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.rows[i]
	r.state, r.instances = state, instances
	r.recent.add(f)
	return b.text(now)
}

// word reports whether text is harmless on a terminal and in a column.
func word(text string) bool {
	return len(text) <= 16 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-") == ""
}

// ended records the end of a node.
func (b *board) ended(i int, how string, now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.rows[i]
	r.state, r.instances = how, 0
	if n := len(r.recent); n > 0 {
		r.recent = r.recent[n-1:] // the counts remain, and there is no rate any more
	}
	return b.text(now)
}

// text returns the status.
func (b *board) text(now time.Time) string {
	width, running, instances, rate := len(b.name), 0, 0, 0.0
	var all figures
	for i := range b.rows {
		r := &b.rows[i]
		width = max(width, len(r.node))
		instances += r.instances
		rate += r.recent.rate()
		if r.state == "running" {
			running++
		}
		if n := len(r.recent); n > 0 {
			f := r.recent[n-1]
			all.received = append(all.received, f.received...)
			all.queued += f.queued
			all.dropped += f.dropped
		}
	}
	var text strings.Builder
	for i := range b.rows {
		r := &b.rows[i]
		var f figures
		if n := len(r.recent); n > 0 {
			f = r.recent[n-1]
		}
		text.WriteString(line(width, r.node, r.state, r.instances, r.recent.rate(), f) + "\n")
	}
	text.WriteString(line(width, b.name, fmt.Sprintf("%d of %d", running, len(b.rows)), instances, rate, all))
	return text.String() + "  " + now.Sub(b.started).Truncate(time.Second).String()
}

// line returns the line of a node, or of their sum.
func line(width int, name, state string, instances int, rate float64, f figures) string {
	text := fmt.Sprintf("%-*s  %-8s  %6d instances  %7s/s  %7s messages", width, name, state, instances, short(rate), short(float64(f.total())))
	if f.queued > 0 {
		text += "  " + short(float64(f.queued)) + " queued"
	}
	if f.dropped > 0 {
		text += "  " + short(float64(f.dropped)) + " dropped"
	}
	return text
}
