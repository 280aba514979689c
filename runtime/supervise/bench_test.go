package supervise

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// BenchmarkRestart measures a failure and the start that follows.
func BenchmarkRestart(b *testing.B) {
	s := New(Spec{Processors: []Processor{{Instances: 1, Supervised: true, Policy: Always}}})
	for b.Loop() {
		s.Step(0, piper.ChildEvent{Kind: piper.ChildFailed, Err: errBoom})
		s.Step(0, piper.ChildEvent{Kind: piper.ChildStarted})
	}
}

// BenchmarkReceived measures a message on an input that may break.
func BenchmarkReceived(b *testing.B) {
	var s Inputs
	s.Init(Input{}, Input{Timeout: time.Second})
	for now := time.Duration(0); b.Loop(); now++ {
		s.Received(1, now)
	}
}
