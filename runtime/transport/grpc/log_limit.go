package grpc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// notices logs what strangers and peers can cause, the same at most once a minute.
type notices struct {
	logger *slog.Logger
	mu     sync.Mutex
	told   map[string]time.Time
}

func newNotices(l *slog.Logger) *notices {
	return &notices{logger: l, told: make(map[string]time.Time)}
}

// tell logs, unless it has done so for the same key within a minute. What does not
// fit among those that are remembered is not logged.
func (n *notices) tell(level slog.Level, key, message string, args ...any) {
	if n.fresh(key, time.Now()) {
		n.logger.Log(context.Background(), level, "transport: "+message, args...)
	}
}

func (n *notices) fresh(key string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, ok := n.told[key]; ok && now.Sub(at) < noticeInterval {
		return false
	}
	if len(n.told) >= noticesMax {
		for k, at := range n.told {
			if now.Sub(at) >= noticeInterval {
				delete(n.told, k)
			}
		}
		if len(n.told) >= noticesMax {
			return false
		}
	}
	n.told[key] = now
	return true
}
