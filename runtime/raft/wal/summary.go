package wal

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// A shape is what a sequence of records amounts to, without the data: which
// entries there are, behind which snapshot. Who writes a log, who reads it and who
// pretends to be a disk follow the same rules by having one.
type summary struct {
	base    position
	missing bool   // the snapshot at base has no file, or base is not a snapshot
	unknown bool   // nothing was seen yet, and the log may begin anywhere
	runs    []run  // terms of the entries behind base, in order
	last    uint64 // index of the last entry, or base.index
	state   hardState
}

// position is an index with the term that its entry has.
type position struct{ index, term uint64 }

// run is a sequence of entries of one term, up to the next run.
type run struct{ first, term uint64 }

type hardState struct{ term, vote, commit uint64 }

func (h hardState) proto() *raftpb.HardState {
	s := &struct { // one allocation, since there is one for each save
		proto raftpb.HardState
		hardState
	}{hardState: h}
	s.proto.Term, s.proto.Vote, s.proto.Commit = &s.term, &s.vote, &s.commit
	return &s.proto
}

// term returns the term of an entry, if it is there.
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

// check says whether entry could be called.
func (s *summary) check(index, term uint64) error {
	switch {
	case index == 0 || term == 0:
		return fmt.Errorf("an entry has index %d and term %d", index, term)
	case s.unknown, s.missing && s.base.term == 0 && index <= s.base.index:
		return nil
	case index <= s.base.index:
		return fmt.Errorf("entry %d is not behind the snapshot at %d", index, s.base.index)
	case index > s.last+1:
		return fmt.Errorf("entry %d follows entry %d", index, s.last)
	}
	return nil
}

// entry adds an entry, behind which there are none.
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

// snapshot takes a snapshot as the new base. As raft does: where the log has the
// entry that the snapshot ends with, those behind it stay; else all go. A snapshot
// without a file (removed, since there is a newer one) changes nothing where the
// entries tell the same.
func (s *summary) snapshot(at position, present bool) {
	switch known := s.base.term != 0 || s.base.index == 0; {
	case at.index == 0, s.unknown && !present: // the log may begin far behind it
		return
	case s.unknown:
	case at.index < s.base.index, known && at.index == s.base.index:
		if at == s.base && present {
			s.missing = false
		}
		return
	case !known && at.index == s.base.index: // the entries begin right behind it
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

// raised is the state that a snapshot implies: what it holds is committed, and its
// term has been seen.
func (h hardState) afterSnapshot(at position) hardState {
	if at.term > h.term {
		h.term, h.vote = at.term, 0
	}
	h.commit = max(h.commit, at.index)
	return h
}

// settled is the state to begin with. A crash may leave a state without what was to
// be written behind it (a commit of entries that are not there: it is a hint, and
// comes again), and one sync mode entries without their state (of a term that was
// not noted: not to have voted in it is always right).
func (s *summary) initialState() hardState {
	h := s.state.afterSnapshot(s.base)
	if term, ok := s.term(s.last); ok && term > h.term {
		h.term, h.vote = term, 0
	}
	h.commit = min(h.commit, s.last)
	return h
}
