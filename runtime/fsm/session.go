package fsm

import "slices"

// session is what is remembered of a client between two of its requests.
type session struct {
	number       uint64
	used         int64    // when, by the clock of all sessions
	floor        uint64   // what lies below it, the client does not wait for; at least 1
	results      []result // from head on: of sequences in [floor, floor+window), ascending
	head         int
	size         int      // of the results, see result.size
	older, newer *session // in its list, by when they were used last
	opener                // which commands do not look at, but for its node
}

// opener is who has opened a session. A request to open that is repeated has the same
// nonce.
type opener struct {
	node   uint64 // 0: none
	client string // "": a node, or opened by an entry of version 1 or 2
	nonce  uint64
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

// size is what a result counts: 1, and more where it holds more than some bytes.
func (r *result) size() int {
	if r.outcome == nil {
		return 1
	}
	return 1 + len(r.value)/resultBytes
}

// kept are the results that are remembered.
func (s *session) kept() []result { return s.results[s.head:] }

// raise forgets what lies below floor, which is higher than before.
func (s *session) raise(floor uint64) {
	s.floor = floor
	for s.head < len(s.results) && s.results[s.head].sequence < floor {
		s.size -= s.results[s.head].size()
		s.results[s.head] = result{}
		s.head++
	}
	if s.head == len(s.results) {
		s.results, s.head = s.results[:0], 0
	}
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
func (s *session) keep(i int, r *result) {
	if len(s.results) == cap(s.results) && s.head > len(s.results)/2 {
		s.results = slices.Delete(s.results, 0, s.head)
		s.head = 0
	}
	if i += s.head; i == len(s.results) {
		s.results = append(s.results, *r)
	} else {
		s.results = slices.Insert(s.results, i, *r)
	}
}
