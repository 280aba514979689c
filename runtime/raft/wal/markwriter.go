package wal

import (
	"google.golang.org/protobuf/proto"

	"go.etcd.io/raft/v3/raftpb"
)

// markWriter counts the records of a log, and the synced ones among them, while the log is
// written.
type markWriter struct {
	token  token
	marked bool // the log has a token and a synced mark
	strict bool // of this process; see mark

	count     uint64 // of records, without the heads of segments
	durable   uint64 // records 0 to durable-1 are synced
	written   bool   // this process has written a mark
	endMarked bool   // the last record repeats the state, with a mark that all records before it are synced
}

// newMarkWriter continues at the end of a log whose records are all synced.
func newMarkWriter(p markReader, strict, endMarked bool) markWriter {
	return markWriter{token: p.token, marked: p.marked, strict: strict, count: p.next, durable: p.next, endMarked: endMarked}
}

// markedState returns the state with a mark, for the record with the given number.
func (m *markWriter) markedState(number uint64, state hardState) *raftpb.HardState {
	return mark{number: number, durable: m.durable, strict: m.strict, token: m.token}.proto(state)
}

// noteWritten counts records that were passed to the engine.
func (m *markWriter) noteWritten(records int) { m.count, m.endMarked = m.count+uint64(records), false }

// noteSynced notes that the first count records are synced.
func (m *markWriter) noteSynced(count uint64) { m.durable = max(m.durable, count) }

// saveState saves a state with a mark. The first mark of a log is synced before any other
// record is written: without it, Open could not use the later marks. In a mode that is not
// strict the first mark of each process is synced for the same reason. In such a mode the
// engine syncs until this mark is synced, because it may start a new segment after it.
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

// markEnd writes a last mark, which says that all records are synced. So Open can report any
// missing record as damage, even a record of the last save.
func (l *fileLog) markEnd() {
	if l.marks.endMarked || !l.marks.marked || l.summary.state == (hardState{}) {
		return
	}
	if err := l.saveState(l.summary.state); err != nil {
		l.options.Logger.Warn("cannot write the last mark of the log; the log is complete", "log", l.dir, "error", err)
	}
}
