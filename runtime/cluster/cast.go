package cluster

import (
	"fmt"
	"slices"

	"github.com/topogen/topogen/runtime/piper/border"
)

// cast is the sending end of a link to all other nodes. It has a pair for each of them. A
// message for all nodes is settled when all of them have handled or lost it, and one for a
// single node when that one has. For each node they have one order.
//
// Messages for all nodes are sent to at most Config.Neighborhood nodes at a time. The other
// nodes wait for a place in turn. So the frames with a message and their confirmations do not
// fill the connections of the node at once, and only as many frames are in memory.
type cast struct {
	outlet *border.Outlet
	ends   []*castEnd
	byPeer map[*nodePeer]*castEnd // the same
	kept   []*castChunk           // for all nodes, oldest first
	placed int                    // number of ends that have a place
	queue  []*castEnd             // ends that wait for a place, oldest first
}

// castChunk is a chunk that some nodes have not handled.
type castChunk struct {
	border.Chunk
	outlet  *border.Outlet // of the link, or its branch for one node
	waiting int            // number of nodes that have not handled it
	err     error          // why some node has lost it
}

// isForOne reports whether only one node gets the chunk.
func (k *castChunk) isForOne() bool { return k.outlet.Node != "" }

// castEnd is the part of a cast for one node.
type castEnd struct {
	cast   *cast
	pair   *outPair
	kept   []castPart // oldest first
	placed bool       // it has a place: messages for all nodes may be sent to its node
	queued bool       // in cast.queue
}

type castPart struct {
	chunk *castChunk
	left  int // messages
}

// forward passes a chunk to one node, or to all nodes now in the topology. Without any it is
// settled at once.
func (c *cast) forward(core *core, f *forward) {
	k := &castChunk{Chunk: f.chunk, outlet: f.outlet}
	ends := c.endsFor(core, k)
	k.waiting = len(ends)
	switch {
	case !k.isForOne():
		f.outlet.Reaches(k.Messages, len(ends))
		c.kept = append(c.kept, k)
	case len(ends) == 0:
		f.outlet.Settle(k.Messages, fmt.Errorf("%w: %s", ErrUnreachable, f.outlet.Node))
		border.ReuseChunk(k.Data)
	}
	for _, end := range ends {
		end.kept = append(end.kept, castPart{k, k.Messages})
	}
	for _, end := range ends {
		if k.isForOne() {
			end.pair.forward(core.now, k.Chunk)
		} else {
			end.pair.keep(core.now, kept{cast: k, messages: int32(k.Messages), atMostOnce: k.AtMostOnce})
		}
	}
	c.settle()
}

// endsFor returns the parts for the nodes that get a chunk.
func (c *cast) endsFor(core *core, k *castChunk) []*castEnd {
	if k.isForOne() {
		if p := core.peer(k.outlet.Node); p != nil {
			return []*castEnd{c.endOf(p)}
		}
		return nil
	}
	names := core.participants()
	ends := make([]*castEnd, 0, len(names))
	for _, name := range names {
		if p := core.peer(name); p != nil {
			ends = append(ends, c.endOf(p))
		}
	}
	return ends
}

// endOf returns the part for a node.
func (c *cast) endOf(p *nodePeer) *castEnd {
	end := c.byPeer[p]
	if end == nil {
		end = &castEnd{cast: c}
		end.pair = p.newPair(c.outlet.Pair, end, c.outlet)
		c.ends = append(c.ends, end)
		if c.byPeer == nil {
			c.byPeer = map[*nodePeer]*castEnd{}
		}
		c.byPeer[p] = end
	}
	return end
}

// remove removes the part for a node that is gone, and for which nothing is kept.
func (e *castEnd) remove() {
	c := e.cast
	c.ends = slices.DeleteFunc(c.ends, func(o *castEnd) bool { return o == e })
	delete(c.byPeer, e.pair.peer)
}

// mayShare reports whether a message for all nodes may be sent now. If not, the end waits
// for a place. If others wait, it keeps its place only until the messages that were sent
// are handled, so that they get their turn.
func (e *castEnd) mayShare() bool {
	c, most := e.cast, e.pair.peer.core.config.Neighborhood
	switch {
	case e.queued:
		return false
	case e.placed:
		return len(c.queue) == 0
	case most > 0 && c.placed >= most:
		e.queued = true
		c.queue = append(c.queue, e)
		return false
	}
	e.placed = true
	c.placed++
	return true
}

// release gives the place of the end to the next ones that wait, because its messages were
// handled or its node cannot be reached.
func (e *castEnd) release() {
	if !e.placed {
		return
	}
	c := e.cast
	e.placed = false
	c.placed--
	others := len(c.queue) > 0
	for len(c.queue) > 0 && c.placed < e.pair.peer.core.config.Neighborhood {
		next := c.queue[0]
		c.queue = c.queue[1:]
		next.queued = false
		next.pair.pump()
	}
	if !others {
		return
	}
	e.pair.pump()
	c.goOn()
}

// goOn sends what ends with a place hold back while others wait for one, if no others do.
func (c *cast) goOn() {
	if len(c.queue) > 0 {
		return
	}
	for _, end := range c.ends {
		end.pair.pump()
	}
}

// lose gives up the place of the end, or its turn to get one, because its node
// cannot be reached.
func (e *castEnd) lose() {
	if e.queued {
		e.queued = false
		e.cast.queue = slices.DeleteFunc(e.cast.queue, func(other *castEnd) bool { return other == e })
		e.pair.wait()
		e.cast.goOn()
	}
	e.release()
}

// Settle counts messages that a node has handled or lost.
func (e *castEnd) Settle(n int, err error) {
	for n > 0 && len(e.kept) > 0 {
		part := &e.kept[0]
		k := min(n, part.left)
		n -= k
		if part.chunk.isForOne() {
			part.chunk.outlet.Settle(k, err)
		} else if err != nil {
			part.chunk.err = err
		}
		if part.left -= k; part.left > 0 {
			continue
		}
		part.chunk.waiting--
		*part = castPart{}
		e.kept = e.kept[1:]
	}
	e.cast.settle()
}

// settle settles the oldest chunks for all nodes that no node waits for.
func (c *cast) settle() {
	for len(c.kept) > 0 && c.kept[0].waiting <= 0 {
		c.outlet.Settle(c.kept[0].Messages, c.kept[0].err)
		border.ReuseChunk(c.kept[0].Data)
		c.kept[0] = nil
		c.kept = c.kept[1:]
	}
}
