package piper

import (
	"errors"
)

// Process is the operating system process of an isolated instance. process.Remote
// implements it.
type Process interface {
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Ended returns the error that says how the process ended, and whether the process exited on its
	// own, between two calls and with code 0.
	Ended() (clean bool, err error)
	// Ends reports whether the error of a call means that the process has ended or is
	// about to end.
	Ends(err error) bool
	// Refuses reports whether the error of a call means that the message could not be
	// passed to the process, and no handler was called.
	Refuses(err error) bool
	// Held requests the number of holds from the process and calls SetHolds if it has
	// changed. It must be called in a turn.
	Held() error
	// Kill ends the process. A call in progress returns an error, which wraps cause unless
	// it is nil. Any goroutine may call it.
	Kill(cause error)
}

// attached is a process under a Stepper and its instance.
type attached struct {
	isolation *Isolation
	process   Process
}

// isCurrent reports whether the instance runs in the process.
func (a attached) isCurrent() bool {
	return a.isolation.watch.phase == watchRunning && a.isolation.current() == a.process
}

// Isolated returns the error for a constructor that was set for an isolated processor.
func Isolated() error {
	return errors.New("the processor is isolated, so its constructor in Processors must be nil: the process makes the instance " +
		"with the function that the topology file names under new, or as a zero value")
}
