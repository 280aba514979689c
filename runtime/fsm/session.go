package fsm

import "slices"

// session is what is remembered of a client.
type session struct {
	client       uint64
	floor        uint64   // what lies below it, the client does not wait for; at least 1
	results      []result // from head on: of sequences in [floor, floor+window), ascending
	head         int
	older, newer *session // by when they were used last
}

// result is what a command ended with.
type result struct {
	sequence, index, term uint64
	*outcome              // nil: it was applied, and has returned nothing
}

// outcome is what an update has returned, or why it was not applied.
type outcome struct {
	value   string
	failure *failure // nil: it was applied
}

func (r *result) applied() Applied {
	a := Applied{Index: r.index, Term: r.term}
	if o := r.outcome; o != nil && o.failure != nil {
		a.Err = o.failure
	} else if o != nil {
		a.Data = o.value
	}
	return a
}

// kept are the results that are remembered.
func (s *session) kept() []result { return s.results[s.head:] }

// raise forgets what lies below floor, and returns how many results that were.
func (s *session) raise(floor uint64) (forgotten int) {
	if floor <= s.floor {
		return 0
	}
	s.floor = floor
	begin := s.head
	for s.head < len(s.results) && s.results[s.head].sequence < floor {
		s.results[s.head] = result{}
		s.head++
	}
	forgotten = s.head - begin
	if s.head == len(s.results) {
		s.results, s.head = s.results[:0], 0
	}
	return forgotten
}

// find returns the result of a sequence, if there is one, and else where it will
// belong among those kept. Sequences mostly come in order.
func (s *session) find(sequence uint64) (i int, ok bool) {
	kept := s.kept()
	if len(kept) == 0 || kept[len(kept)-1].sequence < sequence {
		return len(kept), false
	}
	return slices.BinarySearchFunc(kept, sequence, func(r result, sequence uint64) int {
		switch {
		case r.sequence < sequence:
			return -1
		case r.sequence > sequence:
			return 1
		}
		return 0
	})
}

// keep remembers a result, at the place that find has told.
func (s *session) keep(i int, r result) {
	if len(s.results) == cap(s.results) && s.head > len(s.results)/2 {
		s.results = slices.Delete(s.results, 0, s.head)
		s.head = 0
	}
	if i += s.head; i == len(s.results) {
		s.results = append(s.results, r)
	} else {
		s.results = slices.Insert(s.results, i, r)
	}
}

// sessions is the table of all clients. Who was used longest ago is forgotten
// first: every replica sees the same commands in the same order, so all forget the
// same.
type sessions struct {
	of             map[uint64]*session
	last           *session // that was found last
	oldest, newest *session
	results        int // that all of them keep
}

// find returns the session of a client, nil where there is none, and makes it the
// newest.
func (t *sessions) find(client uint64) *session {
	s := t.last
	if s == nil || s.client != client {
		if s = t.of[client]; s == nil {
			return nil
		}
		t.last = s
	}
	if s != t.newest {
		t.unlink(s)
		t.link(s)
	}
	return s
}

// open makes a session, and forgets others where there are more than max.
func (t *sessions) open(client uint64, max int) *session {
	s := &session{client: client, floor: 1}
	if t.of == nil {
		t.of = make(map[uint64]*session)
	}
	t.of[client] = s
	t.link(s)
	for len(t.of) > max {
		t.forget(t.oldest)
	}
	return s
}

// raise forgets results of a session that its client does not wait for.
func (t *sessions) raise(s *session, floor uint64) { t.results -= s.raise(floor) }

// keep remembers a result of the newest session. Others are forgotten where there
// are more than max, which is at least what one may have.
func (t *sessions) keep(s *session, i int, r result, max int) {
	s.keep(i, r)
	t.results++
	for t.results > max {
		t.forget(t.oldest)
	}
}

func (t *sessions) forget(s *session) {
	t.results -= len(s.kept())
	delete(t.of, s.client)
	t.unlink(s)
	if t.last == s {
		t.last = nil
	}
}

// link makes s the newest.
func (t *sessions) link(s *session) {
	s.older, s.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = s
	} else {
		t.oldest = s
	}
	t.newest = s
}

func (t *sessions) unlink(s *session) {
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		t.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		t.newest = s.older
	}
	s.older, s.newer = nil, nil
}
