package wal

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// contents is a summary with its entries.
type contents struct {
	summary
	entries []*raftpb.Entry
}

func (c *contents) entry(e *raftpb.Entry) error {
	base := c.base.index
	if err := c.summary.entry(e.GetIndex(), e.GetTerm()); err != nil {
		return err
	}
	if c.base.index != base {
		c.entries = c.entries[:0]
	}
	at := e.GetIndex() - c.base.index - 1
	clear(c.entries[at:])
	c.entries = append(c.entries[:at], e)
	return nil
}

func (c *contents) snapshot(at position, present bool) {
	base := c.base.index
	c.summary.snapshot(at, present)
	if c.base.index == base && len(c.entries) == int(c.last-c.base.index) {
		return
	}
	kept := int(c.last - c.base.index)
	removed := len(c.entries) - kept
	clear(c.entries[:removed])
	c.entries = c.entries[removed:]
}

// entryMax is the maximal size of the data of an entry, in bytes. The reader reports a
// longer record as damage.
const entryMax = recordMax - 64 // without the headers of entry and record

// batch is the checked state and entries of one call of Save.
type batch struct {
	state   hardState
	entries []*raftpb.Entry
}

// stateBefore is the state that is written before the entries. Its commit index does not
// include them: if they do not survive a crash, the entries that they would have replaced
// would count as committed.
func (b batch) stateBefore() hardState {
	state := b.state
	if len(b.entries) > 0 {
		state.commit = min(state.commit, b.entries[0].GetIndex()-1)
	}
	return state
}

// newBatch checks a state and entries that will be saved after s. It does not change s.
func newBatch(s *summary, state *raftpb.HardState, entries []*raftpb.Entry) (batch, error) {
	b := batch{state: s.state, entries: entries}
	if !raft.IsEmptyHardState(state) {
		b.state = hardState{state.GetTerm(), state.GetVote(), state.GetCommit()}
	}
	for i, e := range entries {
		var err error
		switch {
		case e == nil:
			err = fmt.Errorf("entries[%d] must not be nil", i)
		case e.GetIndex() == 0 || e.GetTerm() == 0:
			err = fmt.Errorf("the index and the term of an entry must not be 0, got %d and %d", e.GetIndex(), e.GetTerm())
		case len(e.GetData()) > entryMax:
			err = fmt.Errorf("entry %d must have at most %d bytes, got %d", e.GetIndex(), entryMax, len(e.GetData()))
		case i == 0:
			err = s.check(e.GetIndex(), e.GetTerm())
		case e.GetIndex() != entries[i-1].GetIndex()+1:
			err = fmt.Errorf("entry %d must follow entry %d, got entry %d", entries[i-1].GetIndex()+1, entries[i-1].GetIndex(), e.GetIndex())
		}
		if err != nil {
			return batch{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return b, nil
}

// add adds a batch that newBatch has checked against s.
func (s *summary) add(b batch) {
	s.state = b.state
	for _, e := range b.entries {
		_ = s.entry(e.GetIndex(), e.GetTerm()) // newBatch has checked it
	}
}

// checkSnapshot checks a snapshot that will be saved after s, and returns its position. The
// caller may save the newest snapshot again; this changes nothing.
func checkSnapshot(s *summary, snapshot *raftpb.Snapshot) (position, error) {
	at := position{snapshot.GetMetadata().GetIndex(), snapshot.GetMetadata().GetTerm()}
	switch {
	case at.index == 0 || at.term == 0:
		return at, fmt.Errorf("%w: the index and the term of a snapshot must not be 0, got %d and %d", ErrInvalid, at.index, at.term)
	case at.index <= s.base.index && at != s.base:
		return at, fmt.Errorf("%w: a snapshot must be newer than the snapshot at %d, got index %d", ErrInvalid, s.base.index, at.index)
	case proto.Size(snapshot) > snapshotMax-snapshotHeadMax: // the reader would refuse the file
		return at, fmt.Errorf("%w: %w: without a body it must have at most %d bytes, got %d", ErrInvalid, ErrTooLarge, snapshotMax-snapshotHeadMax, proto.Size(snapshot))
	}
	return at, nil
}
