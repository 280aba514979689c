package hexid

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync/atomic"
)

// Generator makes identifiers, each greater as a string than all before it. The zero
// value is ready to use, with "0000" as its current identifier. It is safe for concurrent
// use, without locks: no two calls of Next return the same identifier, and a call that
// begins after another has returned returns a greater one. Do not copy a Generator.
type Generator struct {
	n atomic.Uint64 // number of calls of Next, which is the whole state
}

// Next makes the next identifier and returns it; the first is "0001". The call takes time
// proportional to the length of the identifier. It only fails if memory runs out; the
// identifier is lost then, and the next call returns a greater one.
func (g *Generator) Next() string { return identifier(g.n.Add(1)) }

// Current returns the identifier that Next returned last. Before the first call it
// returns "0000", which Next never returns.
func (g *Generator) Current() string { return identifier(g.n.Load()) }

// identifier returns the n-th identifier, where 0000 is number 0: a group of ffff for
// each 65,536, and a last group for the remainder.
func identifier(n uint64) string {
	last := binary.BigEndian.AppendUint16(nil, uint16(n))
	return strings.Repeat("ffff-", int(n>>16)) + hex.EncodeToString(last)
}
