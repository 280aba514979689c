package piper

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"
)

// Option changes a default of the topology file; it wins over the environment.
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
}

const (
	workersMax = 4096    // far beyond any machine; catches a mistyped number
	batchMax   = 1 << 16 // messages, as in the file
)

// Workers sets how many goroutines run the instances; 0: GOMAXPROCS.
// Environment: TOPOGEN_WORKERS.
func Workers(n int) Option {
	return func(o *options) error {
		if n < 0 || n > workersMax {
			return fmt.Errorf("pool: workers must be between 0 and %d, not %d", workersMax, n)
		}
		o.workers = n
		return nil
	}
}

// Batch sets how many messages are taken from one queue before the next is
// looked at. Environment: TOPOGEN_BATCH.
func Batch(n int) Option {
	return func(o *options) error {
		if n < 1 || n > batchMax {
			return fmt.Errorf("pool: batch must be between 1 and %d, not %d", batchMax, n)
		}
		o.batch = n
		return nil
	}
}

// Rebalance sets how often placement is reconsidered; 0: never. Environment:
// TOPOGEN_REBALANCE.
func Rebalance(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("pool: rebalance must not be negative, it is %v", d)
		}
		o.rebalance = d
		return nil
	}
}

// DrainTimeout sets how long Run goes on when its context has ended.
// Environment: TOPOGEN_DRAIN_TIMEOUT.
func DrainTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 {
			return fmt.Errorf("pool: drain timeout must not be negative, it is %v", d)
		}
		o.drainTimeout = d
		return nil
	}
}

// CycleLimit sets how many messages one queue within a cycle may hold before Run
// ends with ErrCycleGrows; 0: the larger of 262,144 and 16 times its capacity. A
// limit below the capacity of a queue is that capacity. Environment:
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

// Observe tells o what the pool does: moves, restarts and failures of instances.
func Observe(o Observer) Option {
	return func(opt *options) error { opt.observer = o; return nil }
}

// Logger sets where the pool warns; the default is slog.Default().
func Logger(l *slog.Logger) Option {
	return func(o *options) error { o.logger = l; return nil }
}

// environment lists the variables that stand between file and options.
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

// apply puts the environment and the options over the file's defaults.
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
