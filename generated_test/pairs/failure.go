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
	Hang      Failure = "hang" // the call returns when its context ends
	Deaf      Failure = "deaf" // the call ignores its context and returns after the run
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

// The handlers of some messages fail at the first attempt, and those of others at each attempt.
const (
	onceEvery, onceAt     = 5, 2
	alwaysEvery, alwaysAt = 11, 7
)

// In a slow run only these two messages of a source fail.
const slowOnceAt, slowAlwaysAt = 5, 9

// failsAt reports whether the handler of a message fails.
func failsAt(id, attempt int) bool {
	if plan.Program {
		return id/instancesMax%messages == plan.At && attempt <= 1
	}
	if plan.Slow {
		n := id / instancesMax % messages
		return n == slowOnceAt && attempt <= 1 || n == slowAlwaysAt
	}
	return id%onceEvery == onceAt && attempt <= 1 || id%alwaysEvery == alwaysAt
}

// hangStepper is the method Hang of the Stepper. It is nil on workers.
var hangStepper func()

// released is closed after the run. This ends the calls that ignore their context.
var released chan struct{}

// hanging is locked for reading during each call that hangs.
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
	return nil // after a pause
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
	<-released // nil in a child process, so the call never returns
	return errPlanned
}
