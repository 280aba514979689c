package spec

import (
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// RestartPolicy is the kind of end after which an instance is restarted.
type RestartPolicy string

const (
	Never     RestartPolicy = "never"
	OnFailure RestartPolicy = "on-failure"
	Always    RestartPolicy = "always"
)

// Restart is the policy for an instance that has ended. By default it is Never, and
// OnFailure in a group.
type Restart struct {
	Policy      RestartPolicy
	Given       bool          // the file has the key restart
	MaxRestarts int           // in Window; 0: unlimited
	Delay       time.Duration // before the first restart of a window; doubled for each further restart; 0: none
	MaxDelay    time.Duration // 0: none
	Window      time.Duration // 0: none
	Jitter      float64       // 0 to 1: the random part of the delay
	At          finding.Range
	Pointer     string // "/processors/camera/restart"
}

// Health holds the times after which an instance counts as hanging.
type Health struct {
	Timeout, StartupTimeout time.Duration // 0: none
	At                      finding.Range
	Pointer                 string
}

// Isolation is the place where the instances of a processor run.
type Isolation string

const (
	Goroutine Isolation = "goroutine" // in this process
	Process   Isolation = "process"   // in a child process
)

// Then is what follows an error of a handler.
type Then string

const (
	Stop  Then = "stop"
	Skip  Then = "skip"
	Retry Then = "retry"
)

// OnError is the policy for a message whose handler fails.
type OnError struct {
	Then         Then          // Stop by default
	Given        bool          // the file has the key on_error
	MaxAttempts  int           // 0: not in the file
	Delay        time.Duration // before the second attempt; doubled for each further attempt; 0: none
	MaxDelay     time.Duration // 0: none
	Jitter       float64       // 0 to 1: the random part of the delay
	DeadLetter   Text          // the name of a processor, "" for none
	DeadLetterTo int           // its index, -1 for none
	At           finding.Range
	Pointer      string
}

// Attempts returns how often the processor handles a message at most.
func (p *Processor) Attempts() int {
	switch {
	case p.OnError.MaxAttempts > 0:
		return p.OnError.MaxAttempts
	case p.OnError.Then == Retry || p.Isolation == Process:
		return defaultAttempts
	}
	return 1
}

// Strategy is the choice of the instances that are restarted with a failed one.
type Strategy string

const (
	OneForOne  Strategy = "one-for-one"
	OneForAll  Strategy = "one-for-all"
	RestForOne Strategy = "rest-for-one" // the failed one, and the instances of the processors listed after its processor
)

// Group is one entry of groups: processors that are restarted together.
type Group struct {
	Name          Text
	Processors    []int         // indices into Topology.Processors, as the group lists them
	Strategy      Strategy      // OneForOne by default
	Intensity     int           // largest number of restarts within Period; 1 by default
	Period        time.Duration // 5s by default
	Shutdown      time.Duration // 5s by default; for a member that is stopped with a failed sibling
	ShutdownGiven bool          // the file has the key shutdown
	At            finding.Range // of the name
	Pointer       string        // "/groups/sensors"
}
