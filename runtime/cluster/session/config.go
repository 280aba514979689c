package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Config describes both ends of a [Session].
type Config struct {
	Topology string // the name of the topology; both nodes must have the same
	Plan     string // what the nodes must have in common, at most 128 bytes
	Node     string // the name of this node
	Peer     string // the name of the other node

	// Boot is the random number of this process; not 0. Two sessions with the same peer
	// must not have the same number, because a new session does not know what the former
	// one has received.
	Boot uint64

	// Accept reports whether a process may be the next one of the peer. It is called for each process that answers
	// a hello. A process that it does not accept is asked again. nil accepts all of them.
	Accept func(boot uint64) bool

	RetryMin, RetryMax time.Duration // delays before a repetition; 0 means 50 ms and 2 s

	// Window is how many frames may be sent and not acknowledged, at most WindowFrames; 0 means
	// as many.
	Window int

	// ReuseFrames says that the session may use the memory of a frame again after the peer
	// has acknowledged it. The transport must have copied the frame to a connection before
	// the peer receives it, as package grpc does. It must be false with a transport within
	// a process: there the receiver reads the frame itself.
	ReuseFrames bool
	Buffers     *Buffers // nil: the session has its own

	Rand *rand.Rand // for jitter and nonces; nonces must not be predictable in production
}

func (c *Config) check() error {
	var errs []error
	for _, n := range []struct{ key, value string }{{"Topology", c.Topology}, {"Node", c.Node}, {"Peer", c.Peer}} {
		if n.value == "" || len(n.value) > nameBytesMax {
			errs = append(errs, fmt.Errorf("%s must have 1 to %d bytes, got %d", n.key, nameBytesMax, len(n.value)))
		}
	}
	if c.Node == c.Peer {
		errs = append(errs, fmt.Errorf("the names Node and Peer must differ, got %q twice", c.Node))
	}
	if len(c.Plan) > planBytesMax {
		errs = append(errs, fmt.Errorf("the plan must have at most %d bytes, got %d", planBytesMax, len(c.Plan)))
	}
	if c.Boot == 0 {
		errs = append(errs, errors.New("the boot id must not be 0"))
	}
	if c.Rand == nil {
		errs = append(errs, errors.New("a source of random numbers is required: Rand is nil"))
	}
	if c.RetryMin < 0 || c.RetryMax < 0 || c.RetryMax > 0 && c.RetryMax < c.RetryMin {
		errs = append(errs, fmt.Errorf("retry.min must not exceed retry.max, got %v and %v", c.RetryMin, c.RetryMax))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// complete replaces zeros by the defaults.
func (c *Config) complete() {
	if c.RetryMin == 0 {
		c.RetryMin = RetryMinDefault
	}
	if c.RetryMax == 0 {
		c.RetryMax = max(RetryMaxDefault, c.RetryMin)
	}
	if c.Window <= 0 || c.Window > WindowFrames {
		c.Window = WindowFrames
	}
	if c.Buffers == nil {
		c.Buffers = new(Buffers)
	}
}
