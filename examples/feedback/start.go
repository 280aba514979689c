package main

import (
	"math/rand/v2"

	"github.com/topogen/topogen/runtime/topo"
)

// Start is the source: without it nothing would ever circulate.
type Start struct{ sent, surfers int }

// StartConfig is what `with:` in topology.yml gives.
type StartConfig struct {
	Surfers int // that set off from each page
}

// NewStart returns a source of surfers.
func NewStart(c StartConfig) *Start { return &Start{surfers: c.Surfers * pageCount} }

// Ping sends one surfer off. It is called again and again until it says Done, but not
// while the cycle is full: so no more surfers are under way than the queues hold.
func (s *Start) Ping(out *StartSender) error {
	if s.sent == s.surfers {
		return topo.Done
	}
	out.SendSurfer(surfer(s.sent))
	s.sent++
	return nil
}

// surfer is the surfer with a number.
func surfer(number int) Surfer {
	return Surfer{number % pageCount, *rand.NewPCG(uint64(number), 2)}
}
