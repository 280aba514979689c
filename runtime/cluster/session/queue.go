package session

import "encoding/binary"

// queue holds the messages that are in no frame yet, and packs them into frames.
type queue struct {
	lanes           map[uint64]*lane
	recent          *lane // of the last message: most messages have the lane of the one before
	slots           []*lane
	victim          int // the slot at which the search for an idle slot begins
	control, data   class
	blocked         laneList // lanes whose first message would exceed ReassemblyBytes
	partial         int      // sum of the lengths of messages that were sent in part
	bytes, messages int
	spare           entries

	// Of the frame that is being packed:
	current  *lane  // the lane of the next item, as the receiver knows it
	finished uint64 // messages whose last byte is in the frame
}

func newQueue() queue { return queue{lanes: make(map[uint64]*lane)} }

func (q *queue) add(id uint64, m []byte) {
	l := q.recent
	if l == nil || l.id != id {
		if l = q.lanes[id]; l == nil {
			l = &lane{id: id, slot: -1}
			q.lanes[id] = l
		}
		q.recent = l
	}
	l.push(m, &q.spare)
	q.bytes += len(m)
	q.messages++
	if !l.waiting {
		l.waiting, l.sparse = true, true
		q.class(l).sparse.push(l)
	}
}

func (q *queue) class(l *lane) *class {
	if l.id < ControlLanes {
		return &q.control
	}
	return &q.data
}

// Heads of items: the low two bits are the kind, and the other bits are a number.
const (
	itemWhole    = 0 // a complete message of the current lane; the number is its length
	itemFirst    = 1 // the first fragment; the number is its length, and the length of the message follows
	itemNext     = 2 // the next fragment; the number is its length
	itemLane     = 3 // the current lane changes; the number is its slot, times two
	itemAnnounce = 1 // added to the number of itemLane: the 8 bytes of the lane follow
)

const (
	laneBytesMax = 3 + 8 // of an item that changes the lane: SlotsMax*2*4 fits into 3 bytes
	headBytesMax = 3     // of an item with up to FragmentBytes
	sizeBytesMax = 4     // the length of a message
)

// pack appends items to a frame, up to a length of limit.
func (q *queue) pack(f []byte, limit int) []byte {
	q.current, q.finished = nil, 0
	most := limit
	if !q.data.empty() {
		most = len(f) + controlShare
	}
	f = q.packClass(&q.control, f, most)
	return q.packClass(&q.data, f, limit)
}

func (q *queue) packClass(c *class, f []byte, limit int) []byte {
	for l := c.turn(); l != nil; l = c.turn() {
		before := len(f)
		var end turnEnd
		f, end = q.packLane(l, f, limit)
		c.spend(l, len(f)-before)
		switch end {
		case frameFull:
			return f
		case laneBlocked:
			c.leave(l)
			q.blocked.push(l)
		case laneEmpty:
			c.leave(l)
			l.waiting = false
		case turnOver:
			c.leave(l)
			c.busy.push(l)
		}
	}
	return f
}

// turnEnd is why the turn of a lane has ended.
type turnEnd int

const (
	frameFull turnEnd = iota // it goes on in the next frame
	turnOver
	laneEmpty
	laneBlocked
)

// packLane packs messages of a lane while it has credit.
func (q *queue) packLane(l *lane, f []byte, limit int) ([]byte, turnEnd) {
	if q.current != l {
		if len(f)+laneBytesMax+l.room() > limit {
			return f, frameFull
		}
		f = q.packSwitch(l, f)
	}
	for l.count > 0 && l.credit > 0 {
		m := l.message()
		if len(m) > FragmentBytes {
			var end turnEnd
			if f, end = q.packFragment(l, m, f, limit); end != turnOver {
				return f, end
			}
			continue
		}
		if len(f)+l.room() > limit {
			return f, frameFull
		}
		f = appendHead(f, itemWhole, len(m))
		f = append(f, m...)
		l.credit -= len(m)
		q.bytes -= len(m)
		q.finish(l)
	}
	if l.count == 0 {
		return f, laneEmpty
	}
	return f, turnOver
}

// packFragment packs the next fragment of a large message. turnOver says that the turn may
// go on.
func (q *queue) packFragment(l *lane, m, f []byte, limit int) ([]byte, turnEnd) {
	if l.offset == 0 && q.partial > 0 && q.partial+len(m) > ReassemblyBytes {
		return f, laneBlocked
	}
	rest := len(m) - l.offset
	n := min(rest, FragmentBytes, limit-len(f)-headBytesMax-sizeBytesMax)
	if n < min(rest, fragmentMin) {
		return f, frameFull
	}
	if l.offset == 0 {
		q.partial += len(m)
		f = appendHead(f, itemFirst, n)
		f = binary.AppendUvarint(f, uint64(len(m)))
	} else {
		f = appendHead(f, itemNext, n)
	}
	f = append(f, m[l.offset:l.offset+n]...)
	l.credit -= n
	l.offset += n
	q.bytes -= n
	if l.offset == len(m) {
		l.offset = 0
		q.partial -= len(m)
		q.finish(l)
		q.unblock()
	}
	return f, turnOver
}

func (q *queue) finish(l *lane) {
	l.pop(&q.spare)
	q.messages--
	q.finished++
}

func (q *queue) unblock() {
	for q.blocked.first != nil {
		l := q.blocked.pop()
		q.class(l).busy.push(l)
	}
}

// packSwitch makes a lane the current one, and gives it a slot if it has none.
func (q *queue) packSwitch(l *lane, f []byte) []byte {
	q.current = l
	if l.slot >= 0 {
		return appendHead(f, itemLane, l.slot*2)
	}
	q.takeSlot(l)
	f = appendHead(f, itemLane, l.slot*2+itemAnnounce)
	return binary.LittleEndian.AppendUint64(f, l.id)
}

// takeSlot gives a lane a slot. If all are in use, it takes the slot of a lane of which the
// receiver has no part of a message. There is always one: ReassemblyBytes limits the others.
func (q *queue) takeSlot(l *lane) {
	if len(q.slots) < SlotsMax {
		l.slot = len(q.slots)
		q.slots = append(q.slots, l)
		return
	}
	for q.slots[q.victim].offset > 0 {
		q.victim = (q.victim + 1) % SlotsMax
	}
	old := q.slots[q.victim]
	l.slot, old.slot = q.victim, -1
	q.slots[q.victim] = l
	q.victim = (q.victim + 1) % SlotsMax
	if old.count == 0 {
		delete(q.lanes, old.id)
		if q.recent == old {
			q.recent = nil
		}
	}
}

func appendHead(f []byte, kind, number int) []byte {
	v := uint64(number)<<2 | uint64(kind)
	switch {
	case v < 1<<7:
		return append(f, byte(v))
	case v < 1<<14:
		return append(f, byte(v)|0x80, byte(v>>7))
	}
	return binary.AppendUvarint(f, v)
}
