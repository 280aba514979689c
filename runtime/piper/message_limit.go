package piper

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	messageLimitDefault = 64 << 20 // bytes; copying a larger message takes longer than a handler should block
	messageLimitMin     = 64 << 10 // bytes; with a lower limit an error would not fit into a message
	messageLimitMax     = 1 << 30  // bytes; sizes in frames have 31 bits
)

// MessageLimit sets the maximum size, in encoded bytes, of a message to the process of
// an isolated instance, and of all messages together that one handler call in that
// process sends. Each message counts 16 bytes more than its encoding. Environment:
// TOPOGEN_MESSAGE_LIMIT, in bytes or with the unit KiB, MiB or GiB.
func MessageLimit(bytes int) Option {
	return func(o *options) error {
		if bytes < messageLimitMin || bytes > messageLimitMax {
			return fmt.Errorf("pool: message limit must be between %d and %d bytes, got %d", messageLimitMin, messageLimitMax, bytes)
		}
		o.messageLimit = bytes
		return nil
	}
}

// size parses an amount of memory in the syntax of the topology file.
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
			return nil, fmt.Errorf("the size must be a number of bytes, or a number with KiB, MiB or GiB, got %q: %w", text, err)
		}
		return option(int(min(n<<shift, math.MaxInt))), nil
	}
}
