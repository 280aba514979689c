package durable

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"time"
)

// Config is the configuration of a worker. Fields that are zero have the default.
type Config struct {
	Backend Backend
	// Group is the group whose tasks the worker takes: those with the target
	// poll://any@GROUP. A topology uses its name.
	Group string
	// PID identifies the worker in its group. The default is unique for each worker.
	PID string
	// Functions are the functions that the worker runs. A worker without functions can
	// start calls and wait for them.
	Functions []Function
	// Lease is the time after which another worker takes a task whose worker has died. The
	// default is 30 s, and at least 1 s. A long lease delays the takeover; a short one is lost
	// when the process is paused.
	Lease time.Duration
	// Running is how many tasks the worker holds at once, 256 by default. Suspended
	// executions do not count.
	Running int
	// Waiting is how many announced tasks may wait until Running or a Limit allows them,
	// 10,000 by default. The worker asks for tasks that did not fit when half of it is free,
	// and the server announces them again.
	Waiting int
	// Records is how many records an execution may have, 50,000 by default. A replay reads
	// all of them, so a loop without end must continue in a child.
	Records int
	// Logger is slog.Default by default.
	Logger *slog.Logger
	// Manual makes a worker without goroutines, for a scheduler that runs everything in
	// one goroutine under its own clock: Step does the work. Now, Random and Chance are
	// then the clock and the source of randomness.
	Manual bool
	// Await lets the scheduler of a manual worker work until the condition holds. It
	// returns false if it cannot. Handle.Wait calls it outside of durable functions. If it
	// is nil, Wait returns an error.
	Await  func(settled func() bool) bool
	Now    func() time.Time
	Random func() uint64
	Chance func() float64
}

// Limits of a worker, in addition to those of Config.
const (
	leaseDefault   = 30 * time.Second
	leaseMin       = time.Second
	runningDefault = 256
	waitingDefault = 10_000
	recordsDefault = 50_000
	// lanesMax bounds the keys whose rate is remembered.
	lanesMax = 100_000
	// unknownMax bounds the names of unknown functions that are logged.
	unknownMax = 1000
)

func (c *Config) complete() error {
	switch {
	case c.Backend == nil:
		return errors.New("durable: Config.Backend is nil")
	case c.Group == "" || url.PathEscape(c.Group) != c.Group:
		return fmt.Errorf("durable: Config.Group must be a name that needs no escapes in an address, got %q", c.Group)
	case url.PathEscape(c.PID) != c.PID:
		return fmt.Errorf("durable: Config.PID must need no escapes in an address, got %q", c.PID)
	case c.Lease < 0 || c.Running < 0 || c.Waiting < 0 || c.Records < 0:
		return errors.New("durable: a number of Config is negative")
	case c.Manual && (c.Now == nil || c.Random == nil || c.Chance == nil):
		return errors.New("durable: a manual worker needs Config.Now, Random and Chance")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = random
	}
	if c.Chance == nil {
		c.Chance = mathrand.Float64
	}
	if c.PID == "" {
		c.PID = fmt.Sprintf("%016x%016x", c.Random(), c.Random())
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	setDefault(&c.Lease, leaseDefault)
	c.Lease = max(c.Lease, leaseMin)
	setDefault(&c.Running, runningDefault)
	setDefault(&c.Waiting, waitingDefault)
	setDefault(&c.Records, recordsDefault)
	return nil
}

func setDefault[T int | time.Duration](p *T, value T) {
	if *p == 0 {
		*p = value
	}
}

// random is a number that another process does not guess and does not repeat.
func random() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return binary.LittleEndian.Uint64(b[:])
}
