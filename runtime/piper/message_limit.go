package piper

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	messageLimitDefault = 64 << 20 // bytes; more would be copied for longer than a handler should wait
	messageLimitMin     = 64 << 10 // bytes; below it an error would be larger than a message
	messageLimitMax     = 1 << 30  // bytes; sizes in frames are 31 bits
)

// MessageLimit sets how many bytes the encoding of a message may have that goes to
// the process of an instance, and all messages together that one call of its handler
// returns. Each message counts 16 bytes more than its encoding. Environment:
// TOPOGEN_MESSAGE_LIMIT, in bytes or with KiB, MiB or GiB.
func MessageLimit(bytes int) Option {
	return func(o *options) error {
		if bytes < messageLimitMin || bytes > messageLimitMax {
			return fmt.Errorf("pool: message limit must be between %d and %d bytes, got %d", messageLimitMin, messageLimitMax, bytes)
		}
		o.messageLimit = bytes
		return nil
	}
}

// MessageLimit is the setting of that name. Generated code asks for it.
func (p *Pool) MessageLimit() int { return p.options.messageLimit }

// MessageLimit is that of the unit's pool.
func (u *Unit) MessageLimit() int { return u.proc.pool.MessageLimit() }

// size reads an amount of memory as a topology file has it.
func size(option func(int) Option) func(string) (Option, error) {
	return func(text string) (Option, error) {
		digits, shift := text, 0
		for i, unit := range []string{"KiB", "MiB", "GiB"} {
			if before, ok := strings.CutSuffix(text, unit); ok {
				digits, shift = before, 10*(i+1)
			}
		}
		n, err := strconv.ParseUint(digits, 10, 62-30)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of bytes, or one with KiB, MiB or GiB: %w", text, err)
		}
		return option(int(min(n<<shift, math.MaxInt))), nil
	}
}
