package session

import "encoding/binary"

// queue divides frames among the lanes, and packs their messages.
type queue struct {
	lanes         map[uint64]*lane
	recent        *lane // the lane of the last message: most messages have the lane of the message before
	slots         []*lane
	victim        int // the slot at which the search for an idle slot begins
	control, data class
	blocked       laneList // lanes whose first message would exceed ReassemblyBytes
	partial       int      // sum of the lengths of messages that were sent in part
	partials      int      // number of these messages
	listed        int      // messages of Send that are in no frame
	head          [32]byte // room for the first part of a message

	// Of the frame that is being packed:
	current  *lane  // the lane of the next item, as the receiver knows it
	finished uint64 // messages whose last byte is in the frame
}

func newQueue() *queue { return &queue{lanes: make(map[uint64]*lane)} }

// lane returns a lane, which is new if it has no slot and no messages.
func (q *queue) lane(id uint64) *lane {
	if l := q.recent; l != nil && l.id == id {
		return l
	}
	l := q.lanes[id]
	if l == nil {
		l = &lane{id: id, slot: -1}
		q.lanes[id] = l
	}
	q.recent = l
	return l
}

// wake gives a lane a turn, because it has a message.
func (q *queue) wake(l *lane) {
	if !l.waiting {
		l.waiting, l.sparse = true, true
		q.class(l).sparse.push(l)
	}
}

// pending is the number of messages that Send has accepted, or that were taken from a source,
// and whose last byte is in no frame.
func (q *queue) pending() uint64 { return uint64(q.listed + q.partials) }

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

// ready reports whether there is anything to pack.
func (q *queue) ready() bool { return q.settle(&q.control) || q.settle(&q.data) }

// settle ends the turns of lanes that have no message, up to a lane that has one.
func (q *queue) settle(c *class) bool {
	for l := c.turn(); l != nil; l = c.turn() {
		if head, body := l.message(q.head[:0]); len(head)+len(body) > 0 {
			return true
		}
		q.leave(c, l, laneEmpty)
	}
	return false
}

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
		if end == frameFull {
			return f
		}
		q.leave(c, l, end)
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

// leave ends the turn of a lane.
func (q *queue) leave(c *class, l *lane, end turnEnd) {
	c.now = nil
	switch end {
	case laneBlocked:
		q.blocked.push(l)
	case laneEmpty:
		l.waiting, l.credit = false, 0
	case turnOver:
		c.busy.push(l)
	}
}

// packLane packs messages of a lane while it has credit.
func (q *queue) packLane(l *lane, f []byte, limit int) ([]byte, turnEnd) {
	for {
		head, body := l.message(q.head[:0])
		n := len(head) + len(body)
		large := l.rest != nil || n > FragmentBytes
		switch {
		case n == 0:
			return f, laneEmpty
		case l.credit <= 0:
			return f, turnOver
		case large && l.rest == nil && q.partial > 0 && q.partial+n > ReassemblyBytes:
			return f, laneBlocked
		}
		room := headBytesMax + n
		if large {
			room = headBytesMax + sizeBytesMax + min(n, fragmentMin)
		}
		if q.current != l {
			room += laneBytesMax
		}
		if len(f)+room > limit {
			return f, frameFull
		}
		if q.current != l {
			f = q.packSwitch(l, f)
		}
		if large {
			f = q.packFragment(l, head, body, f, limit)
			continue
		}
		f = appendHead(f, itemWhole, n)
		f = append(append(f, head...), body...)
		l.credit -= n
		q.finished++
		l.source.Took()
	}
}

// packFragment packs the next fragment of a large message.
func (q *queue) packFragment(l *lane, head, body, f []byte, limit int) []byte {
	size := len(head) + len(body)
	n := min(size, FragmentBytes, limit-len(f)-headBytesMax-sizeBytesMax)
	if l.rest != nil {
		f = appendHead(f, itemNext, n)
	} else {
		l.size = int32(size)
		q.partial += size
		q.partials++
		f = appendHead(f, itemFirst, n)
		f = binary.AppendUvarint(f, uint64(size))
		l.source.Took()
	}
	f = append(f, head...)
	f = append(f, body[:n-len(head)]...)
	l.credit -= n
	if l.rest = body[n-len(head):]; len(l.rest) == 0 {
		l.rest = nil
		q.partial -= int(l.size)
		q.partials--
		q.finished++
		q.unblock()
	}
	return f
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
	for q.slots[q.victim].rest != nil {
		q.victim = (q.victim + 1) % SlotsMax
	}
	old := q.slots[q.victim]
	l.slot, old.slot = q.victim, -1
	q.slots[q.victim] = l
	q.victim = (q.victim + 1) % SlotsMax
	if !old.waiting {
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
