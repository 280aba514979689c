package spec

import (
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// RestartPolicy says after which end an instance is made anew.
type RestartPolicy string

const (
	Never     RestartPolicy = "never"
	OnFailure RestartPolicy = "on-failure"
	Always    RestartPolicy = "always"
)

// Restart is what becomes of an instance that has ended. The policy is Never by
// default, and OnFailure in a group.
type Restart struct {
	Policy      RestartPolicy
	Given       bool          // the file says restart
	MaxRestarts int           // in Window; 0: unlimited
	Delay       time.Duration // before the first restart of a window, doubled for each further one; 0: none
	MaxDelay    time.Duration // 0: none
	Window      time.Duration // 0: none
	Jitter      float64       // 0 to 1: the part of the delay that is drawn
	At          finding.Range
	Pointer     string // "/processors/camera/restart"
}

// Health says when an instance counts as hanging.
type Health struct {
	Timeout, StartupTimeout time.Duration // 0: none
	At                      finding.Range
	Pointer                 string
}

// Isolation says where the instances of a processor run.
type Isolation string

const (
	Goroutine Isolation = "goroutine" // in this process
	Process   Isolation = "process"   // in a child of it
)

// Then says what follows an error of a handler.
type Then string

const (
	Stop  Then = "stop"
	Skip  Then = "skip"
	Retry Then = "retry"
)

// OnError is what becomes of a message whose handler fails.
type OnError struct {
	Then         Then          // Stop by default
	Given        bool          // the file says on_error
	MaxAttempts  int           // 0: not said
	Delay        time.Duration // before the second attempt, doubled for each further one; 0: none
	MaxDelay     time.Duration // 0: none
	Jitter       float64       // 0 to 1: the part of the delay that is drawn
	DeadLetter   Text          // the name of a processor, "" for none
	DeadLetterTo int           // its index, -1 for none
	At           finding.Range
	Pointer      string
}

// Attempts is how often the processor handles a message at most.
func (p *Processor) Attempts() int {
	switch {
	case p.OnError.MaxAttempts > 0:
		return p.OnError.MaxAttempts
	case p.OnError.Then == Retry || p.Isolation == Process:
		return defaultAttempts
	}
	return 1
}

// Strategy says which instances of a group are restarted with a failed one.
type Strategy string

const (
	OneForOne  Strategy = "one-for-one"
	OneForAll  Strategy = "one-for-all"
	RestForOne Strategy = "rest-for-one" // the failed one and those of the processors listed after its own
)

// Group is one entry of groups: processors that fail together.
type Group struct {
	Name          Text
	Processors    []int         // indices into Topology.Processors, as the group lists them
	Strategy      Strategy      // OneForOne by default
	Intensity     int           // restarts within Period that are not too many; 1 by default
	Period        time.Duration // 5s by default
	Shutdown      time.Duration // 5s by default; of a member that is stopped with a failed one
	ShutdownGiven bool          // the file says shutdown
	At            finding.Range // of the name
	Pointer       string        // "/groups/sensors"
}
