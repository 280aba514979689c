package grpc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logLimiter logs events that peers and unknown clients can cause, each at most once a
// minute. Events of one kind of subject share a limiter, so that others cannot use up its
// keys.
type logLimiter struct {
	subject string // who causes the events
	logger  *slog.Logger

	mu      sync.Mutex
	last    map[string]time.Time
	omitted int         // events without a line, because too many keys are remembered
	report  *time.Timer // logs the number of omitted events; nil: there are none
}

func newLogLimiter(l *slog.Logger, subject string) *logLimiter {
	return &logLimiter{subject: subject, logger: l, last: make(map[string]time.Time)}
}

// log writes a log entry, unless there was one with the same key within a minute. If
// too many different keys are remembered, it counts the event, and one entry a minute has
// the number of such events.
func (n *logLimiter) log(level slog.Level, key, message string, args ...any) {
	if n.fresh(key, time.Now()) {
		n.logger.Log(context.Background(), level, "transport: "+message, args...)
	}
}

// reportOmitted logs how many events have no line.
func (n *logLimiter) reportOmitted() {
	n.mu.Lock()
	omitted := n.omitted
	if n.report != nil {
		n.report.Stop()
	}
	n.omitted, n.report = 0, nil
	n.mu.Unlock()
	if omitted > 0 {
		n.logger.Warn("transport: events were not logged, because too many different ones came within a minute", "of", n.subject, "number", omitted)
	}
}

// fresh reports whether an event must be logged.
func (n *logLimiter) fresh(key string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, ok := n.last[key]; ok && now.Sub(at) < logInterval {
		return false
	}
	if len(n.last) >= logKeysMax {
		for k, at := range n.last {
			if now.Sub(at) >= logInterval {
				delete(n.last, k)
			}
		}
		if len(n.last) >= logKeysMax {
			n.omitted++
			if n.report == nil {
				n.report = time.AfterFunc(logInterval, n.reportOmitted)
			}
			return false
		}
	}
	n.last[key] = now
	return true
}
