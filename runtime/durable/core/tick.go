package core

import "github.com/topogen/topogen/runtime/durable/protocol"

// Operations for the driver of the core. They are not on the wire.
type (
	// Tick processes timeouts that are due: promises, leases, retries, delays, schedules and
	// old messages. Result.More says whether more of them are due.
	Tick struct {
		// Limit is the highest number of timeouts to process. 0 means [TickLimitDefault].
		Limit int
	}
	// Delivered says that a connection took the unblock message of Promise for Address.
	// Further calls with the same values do nothing.
	Delivered struct{ Promise, Address string }
)

// TickLimitDefault bounds the work of a [Tick] to a few milliseconds, so that requests do
// not wait for long behind a large number of timeouts.
const TickLimitDefault = 1_000

func (Tick) Kind() string      { return "tick" }
func (Delivered) Kind() string { return "delivered" }

var _, _ protocol.Operation = Tick{}, Delivered{}

// Next returns in how many milliseconds a [Tick] has work to do, 0 if it has work now. It
// returns false if nothing is scheduled.
func Next(kv KV, now Instant) (wait int64, ok bool) {
	return 0, false
}
