package hexid

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync/atomic"
)

// Generator makes identifiers, each greater as a string than all before it. The
// zero value is ready to use and stands at "0000". It is safe for concurrent use,
// without locks: no two calls of Next return the same, and a call that begins
// after another has returned returns the greater one. It must not be copied.
type Generator struct {
	n atomic.Uint64 // how often Next was called: all there is to know
}

// Next moves on to the next identifier and returns it: "0001" at first. It takes
// as long as the identifier, and cannot fail but where memory ends. An identifier
// may be lost then; calling again returns a greater one.
func (g *Generator) Next() string { return identifier(g.n.Add(1)) }

// Current returns the identifier that Next returned last, or "0000", which Next
// never returns, before the first call.
func (g *Generator) Current() string { return identifier(g.n.Load()) }

// identifier returns the n-th identifier, where 0000 is number 0: a group of ffff
// for each 65,536, and a last one for what is left.
func identifier(n uint64) string {
	last := binary.BigEndian.AppendUint16(nil, uint16(n))
	return strings.Repeat("ffff-", int(n>>16)) + hex.EncodeToString(last)
}
