package session

// lane is a sequence of messages in order. A session has it while the lane has a slot or
// queued messages.
type lane struct {
	id      uint64
	slot    int  // number on the wire; -1: none
	credit  int  // bytes that the lane may still send in its turn
	offset  int  // bytes of the first message that were sent; above 0, the receiver has a part
	waiting bool // in a list, or at its turn
	sparse  bool // had no messages before its turn
	next    *lane

	// A ring of messages. Its length is a power of two or 0.
	ring  [][]byte
	head  int
	count int
}

// ringIdle is the largest ring that an idle lane keeps.
const ringIdle = 64

func (l *lane) push(m []byte) {
	if l.count == len(l.ring) {
		l.grow()
	}
	l.ring[(l.head+l.count)&(len(l.ring)-1)] = m
	l.count++
}

func (l *lane) grow() {
	ring := make([][]byte, max(4, 2*len(l.ring)))
	n := copy(ring, l.ring[l.head:])
	copy(ring[n:], l.ring[:l.head])
	l.ring, l.head = ring, 0
}

func (l *lane) first() []byte { return l.ring[l.head] }

// room is the number of bytes that the next item needs in a frame.
func (l *lane) room() int {
	n := len(l.first())
	if n > FragmentBytes {
		n = sizeBytesMax + min(n-l.offset, fragmentMin)
	}
	return headBytesMax + n
}

func (l *lane) pop() {
	l.ring[l.head] = nil
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.count--
	if l.count == 0 && len(l.ring) > ringIdle {
		l.ring, l.head = nil, 0
	}
}

// laneList is a queue of lanes. A lane is in one list at most.
type laneList struct{ first, last *lane }

func (q *laneList) push(l *lane) {
	if q.first == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

func (q *laneList) pop() *lane {
	l := q.first
	q.first, l.next = l.next, nil
	if q.first == nil {
		q.last = nil
	}
	return l
}
