package cluster

import (
	"slices"

	"github.com/topogen/topogen/runtime/internal/bug"
	"github.com/topogen/topogen/runtime/piper"
)

// cast is the sending end of a pair whose messages go to all other nodes. It has a pair
// for each of them. A message is settled when all nodes have handled or lost it.
type cast struct {
	outlet *piper.Outlet
	ends   []*castEnd
	kept   []*castChunk // oldest first
}

// castChunk is a chunk that some nodes have not handled.
type castChunk struct {
	messages int
	waiting  int   // number of nodes that have not handled it
	err      error // why some node has lost it
}

// castEnd is the part of a cast for one node.
type castEnd struct {
	cast *cast
	pair *outPair
	kept []castPart
}

type castPart struct {
	chunk *castChunk
	left  int // messages
}

// forward passes a chunk to the nodes that take part now. Without any it is settled at
// once.
func (c *cast) forward(core *core, chunk piper.Chunk) {
	k := &castChunk{messages: chunk.Messages}
	for _, name := range core.participants() {
		p := core.peer(name)
		if p == nil {
			continue
		}
		end := c.endOf(p)
		k.waiting++
		end.kept = append(end.kept, castPart{k, chunk.Messages})
	}
	c.kept = append(c.kept, k)
	for _, end := range c.ends {
		if n := len(end.kept); n > 0 && end.kept[n-1].chunk == k {
			own := chunk
			if !bug.On(bug.CastShared) {
				own.Data = slices.Clone(chunk.Data) // each pair writes a header of its own
			}
			end.pair.forward(core.now, own)
		}
	}
	piper.ReuseChunk(chunk.Data)
	c.settle()
}

// endOf returns the part for a node.
func (c *cast) endOf(p *peer) *castEnd {
	for _, end := range c.ends {
		if end.pair.peer == p {
			return end
		}
	}
	end := &castEnd{cast: c}
	end.pair = p.newPair(c.outlet.Pair, end, nil)
	c.ends = append(c.ends, end)
	return end
}

// Settle counts messages that a node has handled or lost.
func (e *castEnd) Settle(n int, err error) {
	for n > 0 && len(e.kept) > 0 {
		part := &e.kept[0]
		k := min(n, part.left)
		n -= k
		if err != nil {
			part.chunk.err = err
		}
		if part.left -= k; part.left == 0 {
			if part.chunk.waiting--; bug.On(bug.CastSettledByOne) {
				part.chunk.waiting = min(part.chunk.waiting, 0)
			}
			e.kept = e.kept[1:]
		}
	}
	e.cast.settle()
}

// settle settles the oldest chunks that no node waits for.
func (c *cast) settle() {
	for len(c.kept) > 0 && c.kept[0].waiting == 0 {
		c.outlet.Settle(c.kept[0].messages, c.kept[0].err)
		c.kept[0] = nil
		c.kept = c.kept[1:]
	}
}
