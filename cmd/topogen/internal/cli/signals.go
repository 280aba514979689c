package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// signalWindow is the time within which two signals count as one. timeout(1) sends a signal
// to a process and to its group, so the process receives it twice.
const signalWindow = 300 * time.Millisecond

// interrupted is the cause of a context that ended with the first signal.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "interrupted: " + i.signal.String() }

// code returns the exit code as shells define it: 130 for SIGINT, 143 for SIGTERM.
func (i interrupted) code() int {
	number, ok := i.signal.(syscall.Signal)
	if !ok {
		return exitOther
	}
	return 128 + int(number)
}

// interruptibly calls do with a context that ends with the first SIGINT, SIGTERM or
// SIGHUP, so that do can clean up and end its children. A second signal has its default
// effect. Signals that this process was started to ignore stay ignored.
func interruptibly(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	if handled := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored); len(handled) > 0 { // an empty list would mean all signals
		signal.Notify(signals, handled...)
	}
	go func() {
		select {
		case s := <-signals:
			cancel(interrupted{s})
			time.Sleep(signalWindow)
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	err := do(ctx)
	signal.Stop(signals)
	cancel(nil)
	if cause, ok := errors.AsType[interrupted](context.Cause(ctx)); ok && err != nil {
		return cause
	}
	return err
}
