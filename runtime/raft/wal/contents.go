package wal

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// contents is a shape with its entries.
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
	gone := len(c.entries) - kept
	clear(c.entries[:gone])
	c.entries = c.entries[gone:]
}

// entryMax bounds the data of an entry: what is longer is taken for damage when it
// is read.
const entryMax = recordMax - 64 // the heads of entry and record

// batch is what one call saves, checked against what is there.
type batch struct {
	state   hardState
	entries []*raftpb.Entry
}

// before is the state as it is written before the entries. It calls none of these
// committed: should they not survive a crash, those that stood in their place
// before would be.
func (b batch) stateBefore() hardState {
	state := b.state
	if len(b.entries) > 0 {
		state.commit = min(state.commit, b.entries[0].GetIndex()-1)
	}
	return state
}

// newBatch checks what is to be saved behind s. It changes nothing.
func newBatch(s *summary, state *raftpb.HardState, entries []*raftpb.Entry) (batch, error) {
	b := batch{state: s.state, entries: entries}
	if !raft.IsEmptyHardState(state) {
		b.state = hardState{state.GetTerm(), state.GetVote(), state.GetCommit()}
	}
	for i, e := range entries {
		var err error
		switch {
		case e == nil:
			err = fmt.Errorf("entry number %d is nil", i)
		case e.GetIndex() == 0 || e.GetTerm() == 0:
			err = fmt.Errorf("an entry has index %d and term %d", e.GetIndex(), e.GetTerm())
		case len(e.GetData()) > entryMax:
			err = fmt.Errorf("entry %d has %d bytes, more than %d", e.GetIndex(), len(e.GetData()), entryMax)
		case i == 0:
			err = s.check(e.GetIndex(), e.GetTerm())
		case e.GetIndex() != entries[i-1].GetIndex()+1:
			err = fmt.Errorf("entry %d follows entry %d", e.GetIndex(), entries[i-1].GetIndex())
		}
		if err != nil {
			return batch{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return b, nil
}

// add takes a batch into the shape, which newBatch has checked it against.
func (s *summary) add(b batch) {
	s.state = b.state
	for _, e := range b.entries {
		_ = s.entry(e.GetIndex(), e.GetTerm()) // checked
	}
}

// checkSnapshot checks a snapshot that is to be saved behind s. The one that is there
// may be saved again, which changes nothing.
func checkSnapshot(s *summary, snapshot *raftpb.Snapshot) (position, error) {
	at := position{snapshot.GetMetadata().GetIndex(), snapshot.GetMetadata().GetTerm()}
	switch {
	case at.index == 0 || at.term == 0:
		return at, fmt.Errorf("%w: a snapshot has index %d and term %d", ErrInvalid, at.index, at.term)
	case at.index <= s.base.index && at != s.base:
		return at, fmt.Errorf("%w: a snapshot at %d is not newer than the one at %d", ErrInvalid, at.index, s.base.index)
	case proto.Size(snapshot) > snapshotMax-snapshotHeadMax: // its file could not be read
		return at, fmt.Errorf("%w: %w: without a body it must have at most %d bytes, got %d", ErrInvalid, ErrTooLarge, snapshotMax-snapshotHeadMax, proto.Size(snapshot))
	}
	return at, nil
}
