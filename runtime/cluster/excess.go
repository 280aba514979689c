package cluster

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
)

// A pair has a limit of the messages that wait for their handlers on the receiving node
// (border.Arrivals.Limit). A correct node may exceed it: a handler call sends more than the
// capacity, the sending process is restarted again and again while the handler does not return, or
// messages that were dropped after retry.timeout still wait. The session has acknowledged such
// messages, so they must not be lost. The receiving node ignores the first chunk for which it has no
// room, and all later ones of the pair. When half of the limit is free, it tells the sending node how
// many messages of the session it has taken. The sending node, which keeps all messages until they
// are confirmed, then sends the others again. So a peer that ignores the capacities fills no memory.

// excess is the state of the receiving end of a pair.
type excess uint8

const (
	excessNone    excess = iota
	excessIgnored        // chunks were ignored
	excessAsked          // the sending node was asked to send them again; chunks that it has sent before are ignored
)

// waiting is the number of messages that were put and not handled.
func (in *inPair) waiting() uint64 { return in.put - min(in.put, in.handled.Load()) }

// take passes a chunk to the pool, or ignores it.
func (in *inPair) take(m []byte) error {
	messages, skip, data, err := readChunk(m)
	if err != nil {
		return err
	}
	n := uint64(messages - skip)
	switch waiting := in.waiting(); {
	case n > in.limit/2:
		return fmt.Errorf("%w: a chunk has %d messages, and the limit of its pair is %d", errMalformed, n, in.limit)
	case in.excess != excessNone:
		return nil
	case in.peer.core.left: // no handler runs any more, and the sending node keeps them
		return nil
	case waiting+n > in.limit:
		in.excess = excessIgnored // confirm is called when a message was handled, so askAgain is
		in.peer.logRarely(&in.peer.remote.refusals().excess, slog.LevelWarn, "topogen: too many messages of a pair wait here; others wait on their sending node", slog.Uint64("waiting", waiting))
		return nil
	}
	in.put += n
	in.peer.core.quietAt = in.peer.core.now
	in.arrivals.Put(data, skip, in.process)
	if in.peer.core.finished {
		in.peer.core.pool.RefuseLate()
	}
	return nil
}

// askAgain asks the sending node for the messages that were ignored, if there is room for them.
func (in *inPair) askAgain() {
	if in.excess != excessIgnored || in.waiting() > in.limit/2 {
		return
	}
	in.excess = excessAsked
	m := binary.AppendUvarint([]byte{controlAgain}, in.lane)
	in.peer.send(laneAnswers|in.lane, binary.AppendUvarint(m, in.put-in.base))
}

// again begins to take messages again.
func (in *inPair) again() error {
	if in.excess != excessAsked {
		return fmt.Errorf("%w: messages are sent again that were not ignored", errMalformed)
	}
	in.excess = excessNone
	return nil
}

// sendAgain sends all messages of this session again but the first ones that the other node has
// taken.
func (p *outPair) sendAgain(taken uint64) error {
	at, given := 0, 0
	for n := p.settled; n != taken; at++ {
		if n > taken || given >= p.given {
			return fmt.Errorf("%w: the other node has taken %d messages of a pair that were not sent", errMalformed, taken)
		}
		if k := &p.kept[at]; !k.lost {
			given++
			n += uint64(k.left())
		}
	}
	p.again = true
	p.unsend(at, nil)
	p.pump()
	return nil
}

// unsend prepares the chunks from an index on to be sent again, because the other node does not have
// them. why is what becomes of messages that are sent at most once, if it is not nil.
func (p *outPair) unsend(from int, why error) {
	for i := from; i < p.handed; i++ {
		k := &p.kept[i]
		if k.lost {
			continue
		}
		p.unsent(k)
		if why != nil && k.atMostOnce {
			k.lost, k.data, k.cast = true, nil, nil
			p.lostWhy = why
		}
	}
	rest := slices.DeleteFunc(p.kept[from:], func(k kept) bool { return k.dropped && !k.lost })
	if n := len(p.kept) - from - len(rest); n > 0 {
		defer p.peer.core.role.doubt(p.To, -n)
		p.kept = p.kept[:from+len(rest)]
	}
	p.handed = from
	p.passLost()
	p.release()
}
