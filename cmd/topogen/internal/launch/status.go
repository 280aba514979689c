package launch

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// figures are the counters of all edges at one time.
type figures struct {
	at              time.Time
	received        []uint64  // by edge
	queued, dropped uint64    // sums over all edges
	faults          [4]uint64 // by faultWords
}

// faultWords name the counters of failures.
var faultWords = [...]string{"restarts", "broken inputs", "recovered", "given up"}

// parseFigures parses a line of a program: its faults, then received, queued and dropped
// for each edge. The line may contain anything, because the program contains user code.
func parseFigures(line string, at time.Time) (figures, bool) {
	f := figures{at: at}
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return f, false
		}
		if i < len(f.faults) {
			f.faults[i] = n
			continue
		}
		switch (i - len(f.faults)) % 3 {
		case 0:
			f.received = append(f.received, n)
		case 1:
			f.queued += n
		default:
			f.dropped += n
		}
	}
	return f, true
}

func (f figures) total() (sum uint64) {
	for _, n := range f.received {
		sum += n
	}
	return sum
}

// status returns the status line: the time, the number of messages, their rate since the
// figures before, and the edge with the highest rate.
func status(name string, edges []string, started time.Time, before, now figures) string {
	text := fmt.Sprintf("%s  %s  %s messages", name, now.at.Sub(started).Truncate(time.Second), short(float64(now.total())))
	seconds := now.at.Sub(before.at).Seconds()
	if seconds > 0 && len(before.received) == len(now.received) {
		text += "  " + short(float64(now.total()-before.total())/seconds) + "/s"
	}
	if now.queued > 0 {
		text += "  " + short(float64(now.queued)) + " queued"
	}
	if now.dropped > 0 {
		text += "  " + short(float64(now.dropped)) + " dropped"
	}
	for i, n := range now.faults {
		if n > 0 {
			text += "  " + short(float64(n)) + " " + faultWords[i]
		}
	}
	if seconds > 0 && len(before.received) == len(now.received) {
		busiest, most := -1, uint64(0)
		for i, n := range now.received {
			if more := n - before.received[i]; more > most {
				busiest, most = i, more
			}
		}
		if busiest >= 0 && busiest < len(edges) && len(now.received) > 1 {
			text += "  " + edges[busiest] + " " + short(float64(most)/seconds) + "/s"
		}
	}
	return text
}

// short formats a number with about three digits: 0, 12, 1.23k, 45.6M.
func short(n float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G", "T"} {
		if n < 999.5 {
			break
		}
		n, unit = n/1000, next
	}
	switch {
	case unit == "", n >= 99.95:
		return strconv.FormatFloat(n, 'f', 0, 64) + unit
	case n >= 9.995:
		return strconv.FormatFloat(n, 'f', 1, 64) + unit
	default:
		return strconv.FormatFloat(n, 'f', 2, 64) + unit
	}
}

// rateOver is the time over which rates are averaged.
const rateOver = time.Second

// show keeps the status line up to date until the program has ended.
func (c *child) show() {
	started := time.Now()
	var recent window
	c.reports(func(line string) {
		if now, ok := parseFigures(line, time.Now()); ok {
			recent.add(now)
			c.screen.set(status(c.values.Name, c.values.Edges, started, recent[0], now))
		}
	})
}

// reports calls each with the lines that the program writes, until it has ended.
func (c *child) reports(each func(line string)) {
	lines := bufio.NewScanner(c.figures)
	lines.Buffer(nil, 16<<20) // 65,536 edges, with three numbers each
	for lines.Scan() {
		each(lines.Text())
	}
}

// window has the figures of the time over which rates are averaged, oldest first.
type window []figures

func (w *window) add(now figures) {
	*w = append(*w, now)
	for len(*w) > 2 && now.at.Sub((*w)[1].at) >= rateOver {
		*w = (*w)[1:]
	}
}

// rate returns the messages per second.
func (w window) rate() float64 {
	if len(w) < 2 {
		return 0
	}
	before, now := w[0], w[len(w)-1]
	if seconds := now.at.Sub(before.at).Seconds(); seconds > 0 && len(before.received) == len(now.received) {
		return float64(now.total()-before.total()) / seconds
	}
	return 0
}
