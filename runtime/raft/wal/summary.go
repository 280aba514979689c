package wal

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// summary is the result of a sequence of records without the data of the entries: the
// newest snapshot, and the entries after it. Writer, reader and simulated disk all use a
// summary, so they apply the same rules.
type summary struct {
	base    position
	missing bool   // the snapshot at base has no file, or base is not a snapshot
	unknown bool   // no record was read yet, and the log may begin at any index
	runs    []run  // terms of the entries after base, in order
	last    uint64 // index of the last entry, or base.index
	state   hardState
}

// position is the index and the term of an entry.
type position struct{ index, term uint64 }

// run is a sequence of entries of one term, up to the next run.
type run struct{ first, term uint64 }

type hardState struct{ term, vote, commit uint64 }

func (h hardState) proto() *raftpb.HardState {
	s := &struct { // a single allocation, because each save needs one
		proto raftpb.HardState
		hardState
	}{hardState: h}
	s.proto.Term, s.proto.Vote, s.proto.Commit = &s.term, &s.vote, &s.commit
	return &s.proto
}

// term returns the term of an entry, if the summary includes the entry.
func (s *summary) term(index uint64) (uint64, bool) {
	if index <= s.base.index || index > s.last {
		return 0, false
	}
	for i := len(s.runs) - 1; i >= 0; i-- {
		if s.runs[i].first <= index {
			return s.runs[i].term, true
		}
	}
	return 0, false
}

// check returns the error that entry would return, and changes nothing.
func (s *summary) check(index, term uint64) error {
	switch {
	case index == 0 || term == 0:
		return fmt.Errorf("the index and the term of an entry must not be 0, got %d and %d", index, term)
	case s.unknown, s.missing && s.base.term == 0 && index <= s.base.index:
		return nil
	case index <= s.base.index:
		return fmt.Errorf("an entry must follow the snapshot at %d, got entry %d", s.base.index, index)
	case index > s.last+1:
		return fmt.Errorf("entry %d must follow entry %d, got entry %d", s.last+1, s.last, index)
	}
	return nil
}

// entry adds an entry, which becomes the last one: it replaces all entries from its index
// on.
func (s *summary) entry(index, term uint64) error {
	if err := s.check(index, term); err != nil {
		return err
	}
	if s.unknown || index <= s.base.index { // the log begins here
		s.base, s.missing, s.unknown = position{index: index - 1}, index > 1, false
		s.runs, s.last = s.runs[:0], index-1
	}
	if index <= s.last {
		for len(s.runs) > 0 && s.runs[len(s.runs)-1].first >= index {
			s.runs = s.runs[:len(s.runs)-1]
		}
	}
	if len(s.runs) == 0 || s.runs[len(s.runs)-1].term != term {
		s.runs = append(s.runs, run{index, term})
	}
	s.last = index
	return nil
}

// snapshot makes a snapshot the new base. As in raft, if the log has the last entry of the
// snapshot with the same term, the entries after it stay. Otherwise all entries are removed.
// The file of a snapshot may be missing because a newer one has replaced it (present is
// false); such a snapshot changes nothing if the log has its last entry.
func (s *summary) snapshot(at position, present bool) {
	switch known := s.base.term != 0 || s.base.index == 0; {
	case at.index == 0, s.unknown && !present: // the log may begin long after it
		return
	case s.unknown:
	case at.index < s.base.index, known && at.index == s.base.index:
		if at == s.base && present {
			s.missing = false
		}
		return
	case !known && at.index == s.base.index: // the first entry directly follows the snapshot
		if present {
			s.base, s.missing = at, false
		}
		return
	}
	term, ok := s.term(at.index)
	matches := ok && term == at.term
	switch {
	case matches && !present:
		return
	case matches:
		for len(s.runs) > 1 && s.runs[1].first <= at.index+1 {
			s.runs = s.runs[1:]
		}
		if at.index == s.last {
			s.runs = s.runs[:0]
		} else {
			s.runs[0].first = max(s.runs[0].first, at.index+1)
		}
	default:
		s.runs, s.last = s.runs[:0], at.index
	}
	s.base, s.missing, s.unknown = at, !present, false
}

// afterSnapshot returns the state after a snapshot is saved: its entries are committed, and
// the term is at least the snapshot's.
func (h hardState) afterSnapshot(at position) hardState {
	if at.term > h.term {
		h.term, h.vote = at.term, 0
	}
	h.commit = max(h.commit, at.index)
	return h
}

// initialState returns the state that a node starts with. It corrects two effects of a
// crash. If entries after a state are missing, the commit index may exceed the last entry:
// it is lowered, because the leader sends it again. In modes other than Always entries may remain
// without their state: the node starts in their term, without a vote.
func (s *summary) initialState() hardState {
	h := s.state.afterSnapshot(s.base)
	if term, ok := s.term(s.last); ok && term > h.term {
		h.term, h.vote = term, 0
	}
	h.commit = min(h.commit, s.last)
	return h
}
