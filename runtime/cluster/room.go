package cluster

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// The queue of a session is bounded. While it is full, pairs keep their messages, and
// replies wait here. Their number is bounded by the capacities of the edges, because the
// messages that they answer are not confirmed. Control messages have room of their own.

// answer is a reply, or a confirmation that must not overtake one.
type answer struct {
	lane    uint64
	message []byte
}

// offer gives a message to the session. It returns false if the queue is full. Then refill
// goes on when there is room.
func (p *peer) offer(lane uint64, m []byte) bool {
	p.changed = true
	if most := p.core.queueMax; most > 0 && p.session.Stats().QueuedMessages >= most {
		p.full = true
		return false
	}
	switch err := p.session.Send(lane, m); {
	case err == nil:
	case errors.Is(err, session.ErrUnreadEvents): // the messages are sent again when the event is handled
	case errors.Is(err, session.ErrQueueFull):
		p.full = true
		return false
	default:
		p.core.fail(fmt.Errorf("cluster: messages to node %s: %w", p.name, err))
	}
	return true
}

// answer sends a reply or a confirmation after all former ones.
func (p *peer) answer(lane uint64, m []byte) {
	if len(p.answers) > 0 || !p.offer(lane, m) {
		p.answers = append(p.answers, answer{lane, m})
	}
}

// refill gives the session what has waited for room, when its queue is at most half full.
// It returns false if the session got nothing.
func (p *peer) refill() bool {
	if !p.full {
		return false
	}
	v := p.session.Stats()
	if v.QueuedBytes > session.QueueBytesDefault/2 || v.QueuedMessages > p.core.queueMessages()/2 {
		return false
	}
	p.full = false
	for len(p.answers) > 0 && p.offer(p.answers[0].lane, p.answers[0].message) {
		p.answers[0] = answer{}
		p.answers = p.answers[1:]
	}
	if !p.full {
		p.flush()
		p.remote.resume()
	}
	return p.session.Stats().MessagesQueuedTotal > v.MessagesQueuedTotal
}
