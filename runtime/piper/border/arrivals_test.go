package border

import (
	"bytes"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// FuzzChunk cuts any bytes into the messages of a chunk of another node.
func FuzzChunk(f *testing.F) {
	f.Add([]byte{2 << 1, 'a', 'b', 1<<1 | 1, 7, 'c'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 0, func() {
			edge := 0
			for len(b) > 0 {
				next, m, rest, err := cutMessage(b, edge)
				if err != nil {
					return
				}
				if len(m)+len(rest) >= len(b) || !bytes.HasSuffix(b, rest) || next < 0 {
					t.Fatalf("a message of %d bytes for edge %d, and %d bytes after it, of %d", len(m), next, len(rest), len(b))
				}
				edge, b = next, rest
			}
		})
	})
}
