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

	count      int // of queued messages
	head, tail *entry
}

// entry is a message in the queue of a lane. Entries are not in an array, because a node may have
// many lanes with one message each.
type entry struct {
	message []byte
	next    *entry
}

const entriesKept = 1 << 15 // 1 MiB; a session that sends many small messages needs no new entries

// entries are free entries.
type entries struct {
	first *entry
	count int
}

func (e *entries) take() *entry {
	f := e.first
	if f == nil {
		return new(entry)
	}
	e.first, f.next = f.next, nil
	e.count--
	return f
}

func (e *entries) give(f *entry) {
	if e.count == entriesKept {
		return
	}
	f.message, f.next, e.first = nil, e.first, f
	e.count++
}

func (l *lane) push(m []byte, spare *entries) {
	e := spare.take()
	e.message = m
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.count++
}

func (l *lane) message() []byte { return l.head.message }

// room is the number of bytes that the next item needs in a frame.
func (l *lane) room() int {
	n := len(l.message())
	if n > FragmentBytes {
		n = sizeBytesMax + min(n-l.offset, fragmentMin)
	}
	return headBytesMax + n
}

func (l *lane) pop(spare *entries) {
	e := l.head
	if l.head = e.next; l.head == nil {
		l.tail = nil
	}
	l.count--
	spare.give(e)
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
