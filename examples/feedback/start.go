package main

import (
	"math/rand/v2"

	"github.com/topogen/topogen/runtime/topo"
)

// Start is the source of the surfers.
type Start struct{ sent, surfers int }

// StartConfig is the `with:` section in topology.yml.
type StartConfig struct {
	Surfers int // that start on each page
}

// NewStart returns a source of surfers.
func NewStart(c StartConfig) *Start { return &Start{surfers: c.Surfers * pageCount} }

// Ping sends one surfer. It is called again until it returns Done, but not while the
// cycle is full, so there are never more surfers on their way than the queues hold.
func (s *Start) Ping(out *StartSender) error {
	if s.sent == s.surfers {
		return topo.Done
	}
	out.SendSurfer(surfer(s.sent))
	s.sent++
	return nil
}

// surfer returns the surfer with a number.
func surfer(number int) Surfer {
	return Surfer{number % pageCount, *rand.NewPCG(uint64(number), 2)}
}
