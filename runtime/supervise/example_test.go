package supervise_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
)

// A camera may fail once a minute.
func Example() {
	s := supervise.New(supervise.Spec{Processors: []supervise.Processor{{
		Name: "camera", Instances: 1, Supervised: true,
		Policy: supervise.OnFailure, MaxRestarts: 1, Window: time.Minute, Delay: time.Second,
	}}})
	cable := errors.New("the cable is loose")
	for _, e := range []struct {
		at   time.Duration
		kind piper.ChildEventKind
	}{
		{5 * time.Second, piper.ChildFailed},
		{6 * time.Second, piper.ChildDue},
		{6 * time.Second, piper.ChildStarted},
		{9 * time.Second, piper.ChildFailed},
	} {
		for _, f := range s.Step(e.at, piper.ChildEvent{Kind: e.kind, Err: cable}) {
			switch f.Kind {
			case piper.EffectWait:
				fmt.Println("wait", f.Delay)
			case piper.EffectStart:
				fmt.Println("start")
			case piper.EffectGiveUp:
				fmt.Println(f.Err)
			}
		}
	}
	// Output:
	// wait 1s
	// start
	// supervise: max_restarts used up: processor "camera", instance 0: 1 restart within 1m0s, and then the cable is loose
}

// An input that is silent for a second breaks, and recovers with the next message.
func ExampleInputs() {
	var in supervise.Inputs
	in.Init(supervise.Input{Timeout: time.Second})
	in.Start(0)
	in.Received(0, 100*time.Millisecond)
	due, _ := in.Due()
	fmt.Println("due at", due)
	fmt.Println("broken:", in.Expire(due, nil))
	fmt.Println("recovered:", in.Received(0, time.Minute), in.State(0))
	// Output:
	// due at 1.1s
	// broken: [0]
	// recovered: true open
}

// A handler can still read the last message of an input that is broken.
func ExampleTracked() {
	var frames supervise.Tracked[string]
	frames.Set("frame 1")
	frames.Became(supervise.Broken)
	last, ok := frames.Last()
	fmt.Println(last, ok, frames.State(), frames.Closed())
	// Output: frame 1 true broken true
}
