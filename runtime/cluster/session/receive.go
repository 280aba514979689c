package session

import "time"

// Delivery is a message that has arrived.
type Delivery struct {
	Lane uint64

	// Message is part of the frame that was passed to Receive, or a buffer of its own if
	// it has come in fragments or after a gap. It belongs to the caller, who must not
	// append to it, and must not change it if the sender is in the same process.
	Message []byte
}

// Receive handles a frame of the peer. It appends the messages that are complete and next
// in the order of their lanes to out, and returns it. The frame belongs to the session and
// to the returned messages. A frame with an error has no effect, and the session goes on.
// After Receive, call Events and then Frame.
func (s *Session) Receive(now time.Duration, frame []byte, out []Delivery) ([]Delivery, error) {
	s.advance(now)
	s.counts.FramesReceived++
	s.counts.BytesReceived += uint64(len(frame))
	before := len(out)
	out, err := s.receive(frame, out)
	s.counts.MessagesReceived += uint64(len(out) - before)
	if err != nil {
		s.counts.Malformed++
	}
	return out, err
}

func (s *Session) receive(frame []byte, out []Delivery) ([]Delivery, error) {
	if len(frame) == 0 || len(frame) > FrameBytesMax {
		return out, malformed("a frame must have 1 to %d bytes, got %d", FrameBytesMax, len(frame))
	}
	switch frame[0] {
	case kindHello:
		return out, s.receiveHello(frame)
	case kindRefusal:
		return out, s.receiveRefusal(frame)
	case kindAck, kindData, kindDataAck, kindData | flagAckNow, kindDataAck | flagAckNow:
		return s.receiveData(frame, out)
	}
	return out, malformed("the kind of a frame must be 1 to %d, got %d", kindDataAck, frame[0])
}

func (s *Session) receiveData(frame []byte, out []Delivery) ([]Delivery, error) {
	var h header
	body, err := parseHeader(frame, &h)
	if err != nil {
		return out, err
	}
	if h.from != s.peer.boot || h.to != s.config.Boot || s.peer.boot == 0 {
		s.counts.Stale++
		if s.peer.knows { // otherwise hellos are sent anyway
			s.answer(h.from, 0) // a sender that is alive learns who this process is
		}
		return out, nil
	}
	s.peer.heard, s.peer.knows, s.peer.refuses = s.now, true, false
	if h.hasAck {
		if err := s.acknowledged(&h.ack); err != nil {
			return out, err
		}
	}
	if !h.hasData {
		return out, nil
	}
	return s.in.receive(s, &h, body, out)
}

// receiver puts the frames of the peer into their order, and messages together.
type receiver struct {
	last       uint64            // this frame and all before it were handled
	ahead      map[uint64][]byte // copies of the bodies of frames after a missing one
	aheadBytes int

	lanes    []inLane // by slot
	promised int      // sum of the lengths of incomplete messages
	partial  int      // received bytes of incomplete messages
	undo     []step   // of the frame that is being unpacked

	echo       uint64 // the highest stamp
	echoAt     time.Duration
	ackPending bool
	ackAt      time.Duration // when an acknowledgement is sent without data
	frames     int           // received since the last acknowledgement
	bytes      int
}

func newReceiver() receiver { return receiver{} }

func (r *receiver) receive(s *Session, h *header, body []byte, out []Delivery) ([]Delivery, error) {
	known := false
	if len(r.ahead) > 0 {
		_, known = r.ahead[h.number]
	}
	switch {
	case h.number <= r.last || known:
		s.counts.Duplicates++
		r.stamp(s, h)
		r.ackNow(s.now) // the sender may have missed the last one
		return out, nil
	case h.number > r.last+WindowFrames || r.aheadBytes+len(body) > WindowBytes+FrameBytesMax:
		s.counts.Overflows++
		return out, nil
	case h.number > r.last+1:
		r.keep(h.number, body)
		r.stamp(s, h)
		r.ackNow(s.now)
		return out, nil
	}
	out, err := r.unpack(body, out)
	if err != nil {
		return out, err
	}
	r.stamp(s, h)
	r.last = max(r.last+1, h.number)
	for len(r.ahead) > 0 {
		body, ok := r.ahead[r.last+1]
		if !ok {
			break
		}
		r.drop(r.last+1, body)
		if out, err = r.unpack(body, out); err != nil {
			r.ackNow(s.now)
			return out, err // the frame is missing again
		}
		r.last++
		r.ackNow(s.now) // the sender can use the room in the window
	}
	r.handled(s, len(body))
	return out, nil
}

// stamp keeps the highest stamp for the next acknowledgement.
func (r *receiver) stamp(s *Session, h *header) {
	if h.stamp > r.echo {
		r.echo, r.echoAt = h.stamp, s.now
	}
	if !r.ackPending {
		delay := min(ackDelayMax, s.config.RetryMin/4) // before the sender's timeout
		r.ackPending, r.ackAt = true, s.now+delay
		r.frames, r.bytes = 0, 0
	}
	if h.ackNow {
		r.ackNow(s.now)
	}
}

// handled decides whether enough has arrived for an acknowledgement.
func (r *receiver) handled(s *Session, n int) {
	r.frames++
	r.bytes += n
	if r.frames >= ackFrames || r.bytes >= ackBytes {
		r.ackNow(s.now)
	}
}

func (r *receiver) ackNow(now time.Duration) { r.ackAt = min(r.ackAt, now) }

func (r *receiver) ackIsDue(now time.Duration) bool { return r.ackPending && r.ackAt <= now }

// keep keeps a copy of a frame ahead of a missing one. A copy, because the frame may be
// part of a much larger buffer.
func (r *receiver) keep(number uint64, body []byte) {
	if r.ahead == nil {
		r.ahead = make(map[uint64][]byte)
	}
	r.ahead[number] = append([]byte(nil), body...)
	r.aheadBytes += len(body)
}

func (r *receiver) drop(number uint64, body []byte) {
	delete(r.ahead, number)
	r.aheadBytes -= len(body)
}

// takeAck returns the acknowledgement of everything that has arrived.
func (r *receiver) takeAck(now time.Duration) ack {
	r.ackPending = false
	a := ack{last: r.last, echo: r.echo, delay: uint64((now - r.echoAt) / time.Microsecond)}
	if len(r.ahead) == 0 {
		return a
	}
	last := r.last
	for n := range r.ahead {
		last = max(last, n)
	}
	a.bitmap = make([]byte, (last-r.last-2)/8+1)
	for n := range r.ahead {
		i := n - r.last - 2
		a.bitmap[i/8] |= 1 << (i % 8)
	}
	return a
}
