package core

import (
	"fmt"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Defaults of [Config].
const (
	RetryTimeoutDefault = 30_000        // ms, as in the original
	UnblocksMaxDefault  = 1_000         // per address: a client that is gone must not fill the disk
	UnblockAgeDefault   = 24 * 3600_000 // ms: longer than a client is offline and still waits
	DebugTickMaxDefault = 200_000       // timeouts: a debug.tick should process everything at once
	MissedMaxDefault    = 10_000        // occurrences of a schedule: a week of one of every minute, which take less than a second
)

// durationMax is the longest duration of a setting in milliseconds, which means for ever.
// The sum with a time is an int64.
const durationMax = 1 << 60

// Config has the settings of a [Core]. All replicas of a store must use the same.
type Config struct {
	// RetryTimeout is the time in milliseconds after which the execute message of a
	// pending task is sent again. 0 means [RetryTimeoutDefault].
	RetryTimeout int64
	// UnblocksMax is the number of undelivered unblock messages that are kept for an
	// address. Beyond it the oldest is dropped. 0 means [UnblocksMaxDefault].
	UnblocksMax int
	// UnblockAge is the time in milliseconds, by Instant.Run, for which an undelivered unblock
	// message is kept at least. It is dropped within an hour after that. 0 means [UnblockAgeDefault].
	UnblockAge int64
	// MissedMax is the number of occurrences of a schedule that a [Tick] makes up for. If more
	// are due, the older ones are skipped. 0 means [MissedMaxDefault].
	MissedMax int
	// DebugTickMax is the number of timeouts after which a debug.tick goes on in another
	// transaction. It is compared after each [TickLimitDefault] timeouts, so a transaction may
	// have up to so many more. 0 means [DebugTickMaxDefault]. A test of what happens between
	// two such transactions needs few timeouts for it.
	DebugTickMax int
	// Strict refuses promises that have both a timer and a target, as the formal
	// specification demands. The sleep of the TypeScript SDK 0.11.5 creates such promises.
	Strict bool
}

// Core is the state machine. It has no state of its own: everything is in the [KV], so
// several goroutines may call a Core with different KVs.
type Core struct{ config Config }

// New returns a Core. It refuses negative settings.
func New(config Config) (*Core, error) {
	if config.RetryTimeout == 0 {
		config.RetryTimeout = RetryTimeoutDefault
	}
	if config.UnblocksMax == 0 {
		config.UnblocksMax = UnblocksMaxDefault
	}
	if config.UnblockAge == 0 {
		config.UnblockAge = UnblockAgeDefault
	}
	if config.MissedMax == 0 {
		config.MissedMax = MissedMaxDefault
	}
	if config.DebugTickMax == 0 {
		config.DebugTickMax = DebugTickMaxDefault
	}
	if config.RetryTimeout < 0 || config.RetryTimeout > durationMax {
		return nil, fmt.Errorf("durable: RetryTimeout must be between 1 and %d ms, got %d", int64(durationMax), config.RetryTimeout)
	}
	if config.UnblocksMax < 0 {
		return nil, fmt.Errorf("durable: UnblocksMax must be positive, got %d", config.UnblocksMax)
	}
	if config.MissedMax < 0 {
		return nil, fmt.Errorf("durable: MissedMax must be positive, got %d", config.MissedMax)
	}
	if config.DebugTickMax < 0 {
		return nil, fmt.Errorf("durable: DebugTickMax must be positive, got %d", config.DebugTickMax)
	}
	if config.UnblockAge < 0 || config.UnblockAge > durationMax {
		return nil, fmt.Errorf("durable: UnblockAge must be between 1 and %d ms, got %d", int64(durationMax), config.UnblockAge)
	}
	return &Core{config}, nil
}

// RetryTimeout returns the time after which the message of a pending task is sent again,
// in milliseconds.
func (c *Core) RetryTimeout() int64 { return c.config.RetryTimeout }

// An Effect is a message to send after the transaction of the step is committed. An
// execute message is not stored: if it is lost, the retry of the task sends it again. An
// unblock message is stored until a [Delivered] says that a connection took it. The
// unblock messages of a step may share a promise, so a receiver must not change it.
type Effect struct {
	Address string
	Message protocol.Message
	// Dropped says that the message, an unblock, was deleted without being delivered: its
	// address had more of them than Config.UnblocksMax, or it was older than
	// Config.UnblockAge. The driver counts it and does not send it.
	Dropped bool
}
