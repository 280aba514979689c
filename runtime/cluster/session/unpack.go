package session

import "encoding/binary"

// inLane is the receiver's part of a lane that has a slot.
type inLane struct {
	id       uint64
	size     int    // the length of the incomplete message; 0: none
	received int    // bytes of it
	buffer   []byte // of the message
}

// step is a change of a lane by the frame that is being unpacked. It holds the former
// state, so that a frame with an error further on has no effect.
type step struct {
	slot           int
	id             uint64
	size, received int
	fragment       []byte // to append to a message
	total          int    // of this length
	delivery       int    // index of the message that the fragment completes; -1: none
}

// unpack appends the messages of a frame to out. After an error neither out nor the lanes
// have changed.
func (r *receiver) unpack(body []byte, out []Delivery) ([]Delivery, error) {
	before, lanes, promised := len(out), len(r.lanes), r.promised
	r.undo = r.undo[:0]
	out, err := r.items(body, out)
	if err != nil {
		clear(out[before:])
		out = out[:before]
		for i := len(r.undo) - 1; i >= 0; i-- {
			u := &r.undo[i]
			l := &r.lanes[u.slot]
			l.id, l.size, l.received = u.id, u.size, u.received
		}
		r.lanes, r.promised = r.lanes[:lanes], promised
		clear(r.undo)
		return out, err
	}
	if len(r.undo) > 0 {
		r.join(out)
	}
	return out, nil
}

// items checks the items of a frame. Fragments are only noted in undo.
func (r *receiver) items(body []byte, out []Delivery) ([]Delivery, error) {
	var (
		lane    *inLane
		id      uint64
		slot    int
		partial bool // the lane has an incomplete message
	)
	for i := 0; i < len(body); {
		head := uint64(body[i])
		i++
		if head >= 0x80 {
			if i < len(body) && body[i] < 0x80 { // the usual case: a message of 32 bytes to 4 KiB
				head = head&0x7f | uint64(body[i])<<7
				i++
			} else {
				v, n := binary.Uvarint(body[i-1:])
				if n <= 0 {
					return out, malformed("the item at byte %d has an invalid head", i-1)
				}
				head = v
				i += n - 1
			}
		}
		kind, n := head&3, head>>2
		if kind == itemLane {
			used, err := r.enter(n, body[i:])
			if err != nil {
				return out, err
			}
			i += used
			slot = int(n >> 1)
			lane = &r.lanes[slot]
			id, partial = lane.id, lane.size > 0
			continue
		}
		if lane == nil {
			return out, malformed("the first item of a frame must name a lane")
		}
		if kind == itemWhole {
			if n-1 >= uint64(len(body)-i) {
				return out, malformed("a message must have 1 to %d bytes, the rest of the frame, got %d", len(body)-i, n)
			}
			if partial {
				return out, malformed("lane %d has an incomplete message, and another one begins", id)
			}
			end := i + int(n)
			out = append(out, Delivery{Lane: id, Message: body[i:end:end]})
			i = end
			continue
		}
		used, done, err := r.fragment(lane, slot, int(kind), n, body[i:], len(out))
		if err != nil {
			return out, err
		}
		i += used
		if partial = !done; done {
			out = append(out, Delivery{Lane: id})
		}
	}
	return out, nil
}

// enter handles an item that names a lane. It returns how many bytes of the rest of the
// frame it has used.
func (r *receiver) enter(n uint64, rest []byte) (used int, err error) {
	slot := n >> 1
	if n&itemAnnounce == 0 {
		if slot >= uint64(len(r.lanes)) {
			return 0, malformed("slot %d was not announced", slot)
		}
		return 0, nil
	}
	if len(rest) < 8 {
		return 0, malformed("the announcement of a lane must have 8 bytes, got %d", len(rest))
	}
	if slot > uint64(len(r.lanes)) || slot >= SlotsMax {
		return 0, malformed("slots must be announced in order and below %d, got %d after %d", SlotsMax, slot, len(r.lanes))
	}
	if slot == uint64(len(r.lanes)) {
		r.lanes = append(r.lanes, inLane{})
	}
	l := &r.lanes[slot]
	if l.size > 0 {
		return 0, malformed("slot %d gets another lane before its message is complete", slot)
	}
	r.undo = append(r.undo, step{slot: int(slot), id: l.id, delivery: -1})
	l.id = binary.LittleEndian.Uint64(rest)
	return 8, nil
}

// fragment checks a fragment of n bytes at the beginning of rest. It returns how many bytes it
// has used, and whether it completes its message, which is then the delivery with the index.
func (r *receiver) fragment(l *inLane, slot, kind int, n uint64, rest []byte, index int) (used int, done bool, err error) {
	u := step{slot: slot, id: l.id, size: l.size, received: l.received, delivery: -1}
	size := uint64(l.size)
	if kind == itemFirst {
		v, w := binary.Uvarint(rest)
		if w <= 0 || v > MessageBytesMax {
			return 0, false, malformed("the length of a message in fragments must be at most %d, got %d", MessageBytesMax, v)
		}
		if l.size > 0 {
			return 0, false, malformed("lane %d has an incomplete message, and another one begins", l.id)
		}
		if r.promised+int(v) > ReassemblyBytes {
			return 0, false, malformed("incomplete messages must have at most %d bytes, got %d and %d more", ReassemblyBytes, r.promised, v)
		}
		size, used = v, w
	} else if l.size == 0 {
		return 0, false, malformed("lane %d has no incomplete message, and a fragment continues it", l.id)
	}
	if n == 0 || n > uint64(len(rest)-used) || n > size-uint64(l.received) {
		return 0, false, malformed("a fragment must have 1 to %d bytes, got %d", min(uint64(len(rest)-used), size-uint64(l.received)), n)
	}
	u.fragment = rest[used : used+int(n)]
	used += int(n)
	if kind == itemFirst {
		l.size = int(size)
		r.promised += l.size
	}
	if l.received += int(n); l.received == l.size {
		r.promised -= l.size
		l.size, l.received = 0, 0
		done, u.delivery = true, index
	}
	u.total = int(size)
	r.undo = append(r.undo, u)
	return used, done, nil
}

// join appends the fragments of a frame to their messages.
func (r *receiver) join(out []Delivery) {
	for i := range r.undo {
		u := &r.undo[i]
		if u.fragment == nil {
			continue
		}
		l := &r.lanes[u.slot]
		l.grow(u.fragment, u.total)
		r.partial += len(u.fragment)
		if u.delivery >= 0 {
			r.partial -= len(l.buffer)
			out[u.delivery].Message, l.buffer = l.buffer, nil
		}
	}
	clear(r.undo)
}

// grow appends a fragment to the message. The buffer has at most twice the bytes that have
// arrived, whatever length was announced.
func (l *inLane) grow(fragment []byte, size int) {
	if need := len(l.buffer) + len(fragment); need > cap(l.buffer) {
		b := make([]byte, len(l.buffer), min(size, max(2*cap(l.buffer), need)))
		copy(b, l.buffer)
		l.buffer = b
	}
	l.buffer = append(l.buffer, fragment...)
}
