package wal

import (
	"errors"
	"fmt"
	"io"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
)

// headRecords is the number of records at the beginning of a segment that do not come from
// a save: the checksum and the identity. A copy of the last state follows them.
const headRecords = 2

// segmentMin returns the minimal length of a segment. A segment has this length before it
// gets its name.
func segmentMin() int64 { return min(segmentBytes, etcdwal.SegmentSizeBytes) }

// scanned is a record with its position in the files.
type scanned struct {
	record
	state  stateRecord // set if the record is a state
	file   string
	offset int64
	length int64
}

// scanner reads all records of the segments, in order.
type scanner struct {
	all   []segment
	note  openingNote
	visit func(scanned) error // scanner turns its error into a DamageError unless it is an IdentityError or errStop

	unsynced bool // the mode of this Open is Interval or None: a new segment gets its name before it is synced

	marks    markReader
	cut      *Cut   // the incomplete end that a crash has left; nil: none
	end      logEnd // after the records that were read so far
	checksum uint32 // at end
}

// logEnd is the position after the last record of a log.
type logEnd struct {
	segment int // index in the list of segments
	offset  int64
}

func newScanner(all []segment, note openingNote, visit func(scanned) error) *scanner {
	return &scanner{all: all, note: note, visit: visit, marks: markReader{known: len(all) > 0 && all[0].seq == 0}}
}

func (s *scanner) run() error {
	for i := range s.all {
		r, err := openSegment(s.all[i].path, s.checksum, i > 0)
		if err != nil {
			return err
		}
		err = s.segment(i, r)
		if flaw, is := errors.AsType[*flawError](err); is {
			err = s.handleFlaw(i, r, flaw)
		} else if err == nil {
			s.end, s.checksum = logEnd{i, r.offset}, r.crc
		}
		r.close()
		if err != nil || s.cut != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) segment(i int, r *segmentReader) error {
	if r.size < segmentMin() && !s.note.allows(s.all[i], i == len(s.all)-1, r.size) {
		return &flawError{offset: r.size, short: true, reason: fmt.Sprintf(
			"a segment must have at least %d bytes, got %d: its end is missing, and perhaps records", segmentMin(), r.size)}
	}
	for {
		at := r.offset
		rec, length, err := r.next()
		if errors.Is(err, io.EOF) {
			if r.count < headRecords {
				return flawed(r.offset, "the head of the segment is missing")
			}
			return nil
		}
		if err != nil {
			return err
		}
		err = s.record(i, r.count-1, scanned{record: rec, file: r.file.Name(), offset: at, length: length})
		if err != nil && !errors.Is(err, ErrIdentity) && !errors.Is(err, errStop) {
			return &DamageError{File: r.file.Name(), Offset: at, Reason: err.Error()}
		}
		if err != nil {
			return err
		}
	}
}

// record checks the mark of the record at a position in segment i, and visits the record.
func (s *scanner) record(i, position int, r scanned) error {
	if r.kind == typeState {
		var ok bool
		if r.state, ok = parseState(r.data); !ok {
			return errMalformed(r.kind)
		}
	}
	next := s.marks.next
	if !s.marks.accept(r.kind, r.state, position, s.all[i].seq == 0) {
		return errMark(r.state.mark, next)
	}
	return s.visit(r)
}

// errStop ends a scan early.
var errStop = errors.New("no more")
