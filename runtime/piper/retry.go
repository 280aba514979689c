package piper

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/topogen/topogen/runtime/internal/backoff"
)

// delayed is a link whose first message waits for its next attempt. The messages behind
// it wait too, which keeps the order. Other links are not affected.
type delayed struct {
	link *Link
	at   int64
}

// delay holds back a link for the delay before the next attempt at its message.
func (w *watch) delay(l *Link) {
	p := l.to.proc.pool
	chance := rand.Float64
	if p.stepper != nil {
		chance = p.stepper.random.Float64
	}
	watch, now := l.to.proc.Watch, p.clock()
	d := backoff.Delay(watch.Delay, watch.MaxDelay, watch.Jitter, w.lastAttempts, chance)
	at := now + min(int64(d), math.MaxInt64-now)
	l.listed = true // so that new messages do not make it ready
	w.delayed = append(w.delayed, delayed{l, at})
	if w.retryAt == 0 || at < w.retryAt {
		w.retryAt = at
		w.unit.proc.wakeAt(w.unit, at)
	}
}

// retryDue makes those links ready whose delay ends at or before now.
func (w *watch) retryDue(now int64) {
	w.retryAt = 0
	w.delayed = slices.DeleteFunc(w.delayed, func(d delayed) bool {
		if d.at <= now {
			w.unit.ready.push(d.link)
			return true
		}
		if w.retryAt == 0 || d.at < w.retryAt {
			w.retryAt = d.at
		}
		return false
	})
	if w.retryAt != 0 {
		w.unit.proc.wakeAt(w.unit, w.retryAt)
	}
}
