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

// together is how close two signals may be to count as one: whoever signals a
// process and its group, as timeout(1) does, signals us twice.
const together = 300 * time.Millisecond

// interrupted is why a context ended that the first signal ends.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "interrupted: " + i.signal.String() }

// code is the exit code, as shells have it: 130 for SIGINT, 143 for SIGTERM.
func (i interrupted) code() int {
	number, ok := i.signal.(syscall.Signal)
	if !ok {
		return exitOther
	}
	return 128 + int(number)
}

// interruptibly calls do with a context that the first signal ends which asks us
// to end; so nothing is left half done, and no child behind. A second one has its
// usual effect. What we were started to ignore we do.
func interruptibly(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	asked := make(chan os.Signal, 1)
	if heeded := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored); len(heeded) > 0 { // none would mean all
		signal.Notify(asked, heeded...)
	}
	go func() {
		select {
		case s := <-asked:
			cancel(interrupted{s})
			time.Sleep(together)
		case <-ctx.Done():
		}
		signal.Stop(asked)
	}()
	err := do(ctx)
	signal.Stop(asked)
	cancel(nil)
	if cause, ok := errors.AsType[interrupted](context.Cause(ctx)); ok && err != nil {
		return cause
	}
	return err
}
