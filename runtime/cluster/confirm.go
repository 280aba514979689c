package cluster

import (
	"encoding/binary"
	"time"
)

// A confirmation travels with other messages. Without them it is sent after confirmDelay,
// or earlier if the sender would soon have to wait for it.
const (
	confirmDelay = time.Millisecond // a sender that waits for a reply usually sends again earlier
	hurryPart    = 4                // of the capacity of an edge: the sender still has room while the confirmation travels
)

// confirm notes that a pair has messages to confirm.
func (p *peer) confirm(in *inPair) {
	n := in.confirmable()
	if p.in[in.lane] != in {
		return
	}
	if in.askAgain(); n == in.told {
		return
	}
	if !in.listed {
		if in.listed = true; len(p.unconfirmed) == 0 {
			p.confirmAt = p.core.now + confirmDelay
		}
		p.unconfirmed = append(p.unconfirmed, in)
	}
	if n-in.told >= in.hurry {
		p.confirmAt = p.core.now
	}
	p.changed = true
}

// confirmable is the number of handled messages of this session.
func (in *inPair) confirmable() uint64 {
	return in.done - min(in.done, in.base)
}

// flush sends the confirmations that are due, and others if a frame is sent anyway.
func (p *peer) flush() {
	if len(p.unconfirmed) == 0 || p.core.now < p.confirmAt && p.core.flushed == nil && !p.session.Waits() {
		return
	}
	b := []byte{controlConfirm}
	later := p.unconfirmed[:0]
	for _, in := range p.unconfirmed {
		n := in.confirmable()
		switch {
		case n == in.told || p.in[in.lane] != in:
			in.listed = false
		case in.replies:
			in.listed, in.told = false, n
			answer := binary.AppendUvarint([]byte{controlConfirm}, in.lane)
			p.send(laneAnswers|in.lane, binary.AppendUvarint(answer, n))
		default:
			b = binary.AppendUvarint(b, in.lane)
			b = binary.AppendUvarint(b, n)
			later = append(later, in)
		}
	}
	clear(p.unconfirmed[len(later):])
	p.unconfirmed = later
	if len(later) == 0 {
		return
	}
	p.send(laneConfirm, b)
	for _, in := range later {
		in.listed, in.told = false, in.confirmable()
	}
	clear(later)
	p.unconfirmed = later[:0]
}

// sendReply sends the reply to a call.
func (p *peer) sendReply(r *reply) {
	if p.in[r.in.lane] != r.in || r.call.Process != r.in.process {
		return // the process that has asked has ended
	}
	r.in.replies = true
	p.send(laneAnswers|r.in.lane, appendReply(nil, r.in.lane, r.call.Number, r.data, r.err))
}
