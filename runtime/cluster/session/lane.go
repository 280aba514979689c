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

	count       int // of queued messages
	head, tail  *block
	first, free int // index of the first message in head, and of the first free place in tail
}

// block is a part of the queue of a lane.
type block struct {
	messages [blockMessages][]byte
	next     *block
}

const (
	blockMessages = 32
	blocksKept    = 1024 // 0.8 MiB; a session that sends many small messages needs no new blocks
)

// blocks are free blocks.
type blocks struct {
	first *block
	count int
}

func (b *blocks) take() *block {
	f := b.first
	if f == nil {
		return new(block)
	}
	b.first, f.next = f.next, nil
	b.count--
	return f
}

func (b *blocks) give(f *block) {
	if f.next = nil; b.count < blocksKept {
		f.next, b.first = b.first, f
		b.count++
	}
}

func (l *lane) push(m []byte, spare *blocks) {
	switch {
	case l.tail == nil:
		l.head, l.first, l.free = spare.take(), 0, 0
		l.tail = l.head
	case l.free == blockMessages:
		l.tail.next = spare.take()
		l.tail, l.free = l.tail.next, 0
	}
	l.tail.messages[l.free] = m
	l.free++
	l.count++
}

func (l *lane) message() []byte { return l.head.messages[l.first] }

// room is the number of bytes that the next item needs in a frame.
func (l *lane) room() int {
	n := len(l.message())
	if n > FragmentBytes {
		n = sizeBytesMax + min(n-l.offset, fragmentMin)
	}
	return headBytesMax + n
}

func (l *lane) pop(spare *blocks) {
	l.head.messages[l.first] = nil
	l.first++
	l.count--
	switch {
	case l.count == 0:
		spare.give(l.head)
		l.head, l.tail = nil, nil
	case l.first == blockMessages:
		next := l.head.next
		spare.give(l.head)
		l.head, l.first = next, 0
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
