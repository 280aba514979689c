package grpc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logLimiter logs events that peers and unknown clients can cause, each at most once a
// minute.
type logLimiter struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   map[string]time.Time
}

func newLogLimiter(l *slog.Logger) *logLimiter {
	return &logLimiter{logger: l, last: make(map[string]time.Time)}
}

// log writes a log entry, unless there was one with the same key within a minute. If
// too many different keys are remembered, it writes nothing.
func (n *logLimiter) log(level slog.Level, key, message string, args ...any) {
	if n.fresh(key, time.Now()) {
		n.logger.Log(context.Background(), level, "transport: "+message, args...)
	}
}

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
			return false
		}
	}
	n.last[key] = now
	return true
}
