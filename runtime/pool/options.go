package pool

import (
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// Option changes a default of the topology file; it wins over the environment. An
// option that makes no sense is an error of New.
type Option = piper.Option

// Workers sets how many goroutines run the instances; 0: GOMAXPROCS.
// Environment: TOPOGEN_WORKERS.
func Workers(n int) Option { return piper.Workers(n) }

// Batch sets how many messages are taken from one queue before the next is
// looked at. Environment: TOPOGEN_BATCH.
func Batch(n int) Option { return piper.Batch(n) }

// Rebalance sets how often placement is reconsidered; 0: never. Environment:
// TOPOGEN_REBALANCE.
func Rebalance(d time.Duration) Option { return piper.Rebalance(d) }

// DrainTimeout sets how long Run goes on when its context has ended.
// Environment: TOPOGEN_DRAIN_TIMEOUT.
func DrainTimeout(d time.Duration) Option { return piper.DrainTimeout(d) }

// CycleLimit sets how many messages one queue within a cycle may hold before Run
// ends with [ErrCycleGrows]; 0: the larger of 262,144 and 16 times its capacity. A
// limit below the capacity of a queue is that capacity. Environment:
// TOPOGEN_CYCLE_LIMIT.
func CycleLimit(messages int) Option { return piper.CycleLimit(messages) }

// MessageLimit sets how many bytes the encoding of a message may have that goes to
// the process of an instance, and all messages together that one call of its handler
// returns. Each message counts 16 bytes more than its encoding. Environment:
// TOPOGEN_MESSAGE_LIMIT, in bytes or with KiB, MiB or GiB.
func MessageLimit(bytes int) Option { return piper.MessageLimit(bytes) }

// Logger sets where the pool warns; the default is slog.Default().
func Logger(l *slog.Logger) Option { return piper.Logger(l) }

// Observe tells o what the pool does: moves, restarts and failures of instances.
func Observe(o Observer) Option { return piper.Observe(o) }

// Record makes Run open a recorder, which it closes when it returns. It goes
// before the errors section of the file. A nil recorder records nothing.
func Record(open func() (Recorder, error)) Option { return piper.Record(open) }
