//go:build !race

// The race detector makes sync.Pool drop buffers at random, also those of encoding/json.

package cli

import (
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/errtop"
)

// TestMemoryOfPrinting: the functions that print errors allocate little memory, compared to
// the text that they write.
func TestMemoryOfPrinting(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"control characters", "\x01"},
		{"characters of two bytes", "\u0085"},
		{"characters of three bytes", "\u202e"},
		{"characters of four bytes", "\U000e0001"},
		{"letters", "a"},
	} {
		entries := make([]errtop.Entry, speed.Pick(t, 300, 500, 500))
		for i := range entries {
			entries[i] = errtop.Entry{Text: strings.Repeat(c.text, 8<<10/len(c.text)-4) + strconv.Itoa(i), Count: 1}
		}
		for name, write := range map[string]func(io.Writer, []errtop.Entry) error{"table": writeTable, "full": writeFull, "json": writeJSON} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				var out counter
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := write(&out, entries); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				if got := after.TotalAlloc - before.TotalAlloc; got > uint64(out)/10 {
					t.Errorf("%d bytes were allocated to write %d bytes", got, out)
				}
			})
		}
	}
}

// counter counts the bytes that are written to it.
type counter uint64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
