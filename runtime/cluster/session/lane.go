package session

import "slices"

// Source has the messages of a lane. The session asks it for the next one when a frame has room.
type Source interface {
	// Next returns the next message in two parts, or nothing. The first part may be appended to b.
	Next(b []byte) (head, body []byte)
	// Took says that the message is in a frame. If it has more than FragmentBytes, only its begin
	// is, and the session reads the rest of the second part later.
	Took()
}

// lane is a sequence of messages in order. A session has it while the lane has a slot or
// messages.
type lane struct {
	id      uint64
	source  Source
	slot    int    // number on the wire; -1: none
	credit  int    // bytes that the lane may still send in its turn
	rest    []byte // of a message of which the receiver has a part; nil: there is none
	size    int32  // of that message
	waiting bool   // in a list, or at its turn
	sparse  bool   // had no messages before its turn
	next    *lane
}

// message returns the next message, or the rest of the current one.
func (l *lane) message(b []byte) (head, body []byte) {
	if l.rest != nil {
		return nil, l.rest
	}
	return l.source.Next(b)
}

// list is the source of a lane with messages of [Session.Send].
type list struct {
	messages [][]byte
	begin    int  // the first message that was not taken
	total    *int // counts the messages of all lists
}

func (s *list) add(m []byte) {
	if s.begin > len(s.messages)/2 {
		s.messages = slices.Delete(s.messages, 0, s.begin)
		s.begin = 0
	}
	s.messages = append(s.messages, m)
	*s.total++
}

func (s *list) Next([]byte) (head, body []byte) {
	if s.begin == len(s.messages) {
		return nil, nil
	}
	return nil, s.messages[s.begin]
}

func (s *list) Took() {
	s.messages[s.begin] = nil
	*s.total--
	if s.begin++; s.begin == len(s.messages) && cap(s.messages) > 64 {
		s.messages, s.begin = nil, 0
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
