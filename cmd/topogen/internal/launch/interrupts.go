package launch

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// together is how close two signals may be to count as one: whoever signals a
// process and its group, as timeout(1) does, signals us twice.
const together = 300 * time.Millisecond

// interrupts tells apart one interrupt after another.
type interrupts struct {
	signals chan os.Signal
	last    time.Time
}

func listen() *interrupts {
	i := &interrupts{signals: make(chan os.Signal, 8)}
	signal.Notify(i.signals, stopSignals...)
	return i
}

func (i *interrupts) close() { signal.Stop(i.signals) }

// repeated reports whether a signal that has just come belongs to the one before.
func (i *interrupts) repeated() bool {
	now := time.Now()
	if now.Sub(i.last) < together {
		return true
	}
	i.last = now
	return false
}

// until returns a context that the next interrupt ends.
func (i *interrupts) until(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-i.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
