package piper

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
)

// Option overrides a setting of the topology file and of the environment.
type Option func(*options) error

type options struct {
	workers      int
	batch        int
	rebalance    time.Duration
	drainTimeout time.Duration
	cycleLimit   int
	messageLimit int
	observer     Observer
	logger       *slog.Logger
	errors       func() (Recorder, error)
	node         NodeSettings
	border       func() Border // nil: Spec.Cluster opens it
	durable      DurableSettings
}

const (
	workersMax = 4096    // far more than any computer needs; catches a mistyped number
	batchMax   = 1 << 16 // messages; the same limit as in the topology file
)

// Workers sets the number of goroutines that run the instances. 0 means GOMAXPROCS.
// Environment: TOPOGEN_WORKERS.
func Workers(n int) Option {
	return func(o *options) error {
		if n < 0 || n > workersMax {
			return fmt.Errorf("pool: workers must be between 0 and %d, got %d", workersMax, n)
		}
		o.workers = n
		return nil
	}
}

// Batch sets how many messages an instance may handle in a turn, before the worker runs
// the next instance. Environment: TOPOGEN_BATCH.
func Batch(n int) Option {
	return func(o *options) error {
		if n < 1 || n > batchMax {
			return fmt.Errorf("pool: batch must be between 1 and %d, got %d", batchMax, n)
		}
		o.batch = n
		return nil
	}
}

// Rebalance sets how often the pool reconsiders which worker runs which instance. 0
// means never. Environment: TOPOGEN_REBALANCE.
func Rebalance(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("pool: rebalance must not be negative, got %v", d)
		}
		o.rebalance = d
		return nil
	}
}

// DrainTimeout sets how long Run handles remaining messages after its context has
// ended. Environment: TOPOGEN_DRAIN_TIMEOUT.
func DrainTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("pool: drain timeout must not be negative, got %v", d)
		}
		o.drainTimeout = d
		return nil
	}
}

// CycleLimit sets how many messages one queue within a cycle may hold before Run ends
// with ErrCycleGrows. 0 means the larger of 262,144 and 16 times the capacity of the
// queue. If the limit is below the capacity, the capacity is the limit. Environment:
// TOPOGEN_CYCLE_LIMIT.
func CycleLimit(messages int) Option {
	return func(o *options) error {
		if messages < 0 {
			return fmt.Errorf("pool: cycle limit must not be negative, got %d", messages)
		}
		o.cycleLimit = messages
		return nil
	}
}

// Observe sets the observer of the pool. It is called when instances move, fail and are
// restarted.
func Observe(o Observer) Option {
	return func(opt *options) error { opt.observer = o; return nil }
}

// Logger sets the logger for warnings of the pool. The default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error { o.logger = l; return nil }
}

// environment lists the environment variables. They override the topology file, and
// options override them.
var environment = []struct {
	name string
	set  func(text string) (Option, error)
}{
	{"TOPOGEN_WORKERS", number(Workers)},
	{"TOPOGEN_BATCH", number(Batch)},
	{"TOPOGEN_REBALANCE", duration(Rebalance)},
	{"TOPOGEN_DRAIN_TIMEOUT", duration(DrainTimeout)},
	{"TOPOGEN_CYCLE_LIMIT", number(CycleLimit)},
	{"TOPOGEN_MESSAGE_LIMIT", size(MessageLimit)},
}

func number(option func(int) Option) func(string) (Option, error) {
	return func(text string) (Option, error) {
		n, err := strconv.Atoi(text)
		return option(n), err
	}
}

func duration(option func(time.Duration) Option) func(string) (Option, error) {
	return func(text string) (Option, error) {
		d, err := time.ParseDuration(text)
		return option(d), err
	}
}

// apply overrides the settings of the topology file with the environment, and both with
// the options.
func (o *options) apply(opts []Option) error {
	for _, v := range environment {
		text, ok := os.LookupEnv(v.name)
		if !ok || text == "" {
			continue
		}
		option, err := v.set(text)
		if err == nil {
			err = option(o)
		}
		if err != nil {
			return fmt.Errorf("pool: environment variable %s=%q: %w", v.name, text, err)
		}
	}
	for _, option := range opts {
		if option == nil {
			continue
		}
		if err := option(o); err != nil {
			return err
		}
	}
	return nil
}
