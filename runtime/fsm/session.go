package fsm

import "slices"

// session holds the results of a client's or a node's commands until the client no
// longer waits for them.
type session struct {
	number       uint64
	used         int64    // the time of the last use, see sessions.clock
	floor        uint64   // the client does not wait for lower sequences; at least 1
	results      []result // from head on; of sequences in [floor, floor+window), ascending
	head         int
	size         int      // of the results, see result.size
	older, newer *session // neighbors in the list, ordered by last use
	opener                // not used after opening, except for node
}

// opener is the client or node that opened a session. A repeated request to open it has
// the same nonce.
type opener struct {
	node   uint64 // 0: a client
	client string // "": a node, or unknown because an entry of version 1 or 2 opened the session
	nonce  uint64
}

// result is the remembered result of a command.
type result struct {
	sequence, index, term uint64
	*outcome              // nil: it was applied and returned no value
}

// outcome is the value that an update returned, or the reason why it was not applied.
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

// size is how much a result counts against the limits: 1, and more for a long value.
func (r *result) size() int {
	if r.outcome == nil {
		return 1
	}
	return 1 + len(r.value)/resultBytes
}

// kept returns the results that are still remembered.
func (s *session) kept() []result { return s.results[s.head:] }

// raise raises the floor and forgets the results below it.
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

// find returns the index of a sequence's result in kept, or the index where it belongs.
// Sequences mostly come in order.
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

// keep stores a result at the index that find returned.
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
