package launch

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// signalWindow is the time within which two signals count as one. timeout(1) sends a signal
// to a process and to its group, so the process receives it twice.
const signalWindow = 300 * time.Millisecond

// interrupts delivers the interrupts one after the other.
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

// repeated reports whether a signal is a repetition of the previous one.
func (i *interrupts) repeated() bool {
	now := time.Now()
	if now.Sub(i.last) < signalWindow {
		return true
	}
	i.last = now
	return false
}

// until returns a context that ends with the next interrupt.
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
