package pairs

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

// Failure is a way in which a method fails.
type Failure string

const (
	NoFailure Failure = ""
	ReturnErr Failure = "error"
	Joined    Failure = "joined" // an error that is joined to a signal of the runtime
	Panic     Failure = "panic"
	Goexit    Failure = "goexit"
	Hang      Failure = "hang" // until its context ends
	Deaf      Failure = "deaf" // longer than its context
	Exit      Failure = "exit"
	Kill      Failure = "kill"
	Stop      Failure = "stop"  // the process is stopped and never continued
	Pause     Failure = "pause" // the process is stopped and soon continued
)

// IsOfProcess reports whether the failure ends or stops a whole process.
func (f Failure) IsOfProcess() bool { return f == Exit || f == Kill || f == Stop || f == Pause }

// IsHang reports whether only a health timeout ends the call.
func (f Failure) IsHang() bool { return f == Hang || f == Deaf || f == Stop }

// errPlanned is the error of all planned failures.
var errPlanned = errors.New("planned")

// Of the messages, some fail at the first attempt, and others at each.
const (
	onceEvery, onceAt     = 5, 2
	alwaysEvery, alwaysAt = 11, 7
)

// In a slow run only these of the messages of a source fail.
const slowOnceAt, slowAlwaysAt = 5, 9

// failsAt reports whether the handler of a message fails.
func failsAt(id, attempt int) bool {
	if plan.Slow {
		n := id / instancesMax % messages
		return n == slowOnceAt && attempt <= 1 || n == slowAlwaysAt
	}
	return id%onceEvery == onceAt && attempt <= 1 || id%alwaysEvery == alwaysAt
}

// hangStepper is the Hang of the Stepper, if there is one.
var hangStepper func()

// released ends the calls that hang longer than their context.
var released chan struct{}

// hanging is locked for reading by each call that hangs.
var hanging sync.RWMutex

// fail fails in the planned way.
func fail(ctx context.Context) error {
	switch plan.Failure {
	case ReturnErr:
		return errPlanned
	case Joined:
		return errors.Join(topo.Done, ctx.Err(), errPlanned)
	case Panic:
		panic(errPlanned)
	case Goexit:
		runtime.Goexit()
	case Hang, Deaf:
		return hang(ctx)
	case Exit:
		os.Exit(3)
	case Kill, Stop, Pause:
		signal(plan.Failure)
	}
	return nil // the process has continued
}

func hang(ctx context.Context) error {
	hanging.RLock()
	defer hanging.RUnlock()
	if hangStepper != nil {
		hangStepper()
	}
	if plan.Failure == Hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	<-released // nil in a child process: for ever
	return errPlanned
}
