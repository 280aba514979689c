package wal

import (
	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"
)

// marks follows which records a log has and which of them are synced, while it is
// written.
type markWriter struct {
	token  token
	marked bool // there is a token: the log has a mark that is synced
	strict bool // of this process; see mark

	count     uint64 // of records, without the heads of segments
	durable   uint64 // records 0 to durable-1 are synced
	written   bool   // this process has written a mark
	endMarked bool   // the last record is a mark that says nothing but that all before it is synced
}

// newMarkWriter goes on where a log ends, all of which is synced.
func newMarkWriter(p markReader, strict, endMarked bool) markWriter {
	return markWriter{token: p.token, marked: p.marked, strict: strict, count: p.next, durable: p.next, endMarked: endMarked}
}

// at is the state with a mark, for the record of that number.
func (m *markWriter) markedState(number uint64, state hardState) *raftpb.HardState {
	return mark{number: number, durable: m.durable, strict: m.strict, token: m.token}.proto(state)
}

// wrote notes records that were given to the engine.
func (m *markWriter) noteWritten(records int) { m.count, m.endMarked = m.count+uint64(records), false }

// synced notes that the first records, so many, are synced.
func (m *markWriter) noteSynced(count uint64) { m.durable = max(m.durable, count) }

// saveState saves a state with a mark. The first mark of a log is synced before
// anything follows it, and so is that of a process in a mode that is not strict: behind
// a mark that is missing, the next ones could not be judged. In such a mode the engine
// syncs until then, as it may begin a segment behind this mark.
func (l *fileLog) saveState(state hardState) error {
	m := &l.marks
	syncNow := !m.marked || !m.written && !m.strict
	if !m.marked {
		if m.durable < m.count {
			if err := l.flush(); err != nil {
				return err
			}
		}
		m.token, m.marked = newToken(), true
	}
	marked := m.markedState(m.count, state)
	if err := l.wal.Save(marked, nil); err != nil {
		return err
	}
	m.noteWritten(1)
	m.written = true
	if err := l.addBytes(frameMax(proto.Size(marked))); err != nil || !syncNow {
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	if !m.strict {
		l.wal.SetUnsafeNoFsync()
	}
	return nil
}

// markEnd says in the log that all of it is synced, so that whatever is missing later
// is known to be damage. Without it, that would be so up to the last sync but one.
func (l *fileLog) markEnd() {
	if l.marks.endMarked || !l.marks.marked || l.summary.state == (hardState{}) {
		return
	}
	if err := l.saveState(l.summary.state); err != nil {
		l.options.Logger.Warn("the log is complete, but its end cannot be marked", "log", l.dir, "error", err)
	}
}
