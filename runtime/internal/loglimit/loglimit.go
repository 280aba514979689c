// Package loglimit limits the lines that others can cause in the log of a process.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	Interval = time.Minute // minimum time between equal log entries
	KeysMax  = 256         // different log entries that are remembered
)

// A Limiter logs events that peers and unknown clients can cause, each at most once a
// minute. Events of one kind of subject share a limiter, so that others cannot use up its
// keys.
type Limiter struct {
	area    string // of the program: all lines begin with it
	subject string // who causes the events
	logger  *slog.Logger

	mu      sync.Mutex
	last    map[string]time.Time
	omitted int         // events without a line, because too many keys are remembered
	report  *time.Timer // logs the number of omitted events; nil: there are none
}

// New returns a limiter for the events of a subject. All lines begin with the area of the program.
func New(l *slog.Logger, area, subject string) *Limiter {
	return &Limiter{area: area, subject: subject, logger: l, last: make(map[string]time.Time)}
}

// Log writes a log entry, unless there was one with the same key within a minute. If
// too many different keys are remembered, it counts the event, and one entry a minute has
// the number of such events.
func (n *Limiter) Log(level slog.Level, key, message string, args ...any) {
	if n.fresh(key, time.Now()) {
		n.logger.Log(context.Background(), level, n.area+": "+message, args...)
	}
}

// Report logs how many events have no line.
func (n *Limiter) Report() {
	n.mu.Lock()
	omitted := n.omitted
	if n.report != nil {
		n.report.Stop()
	}
	n.omitted, n.report = 0, nil
	n.mu.Unlock()
	if omitted > 0 {
		n.logger.Warn(n.area+": events were not logged, because too many different ones came within a minute", "of", n.subject, "number", omitted)
	}
}

// fresh reports whether an event must be logged.
func (n *Limiter) fresh(key string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, ok := n.last[key]; ok && now.Sub(at) < Interval {
		return false
	}
	if len(n.last) >= KeysMax {
		for k, at := range n.last {
			if now.Sub(at) >= Interval {
				delete(n.last, k)
			}
		}
		if len(n.last) >= KeysMax {
			n.omitted++
			if n.report == nil {
				n.report = time.AfterFunc(Interval, n.Report)
			}
			return false
		}
	}
	n.last[key] = now
	return true
}
