package wal

import (
	"errors"
	"fmt"
	"io"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
)

// headRecords is how many records a segment has before those of saves: its checksum and
// the identity. A copy of the last state follows.
const headRecords = 2

// segmentMin is how long a segment is at least. It has this length before it has its name.
func segmentMin() int64 { return min(segmentBytes, etcdwal.SegmentSizeBytes) }

// scanned is a record with its place.
type scanned struct {
	record
	state  stateRecord // of a record of that type
	file   string
	offset int64
	length int64
}

// scanner reads all records of the segments, in order.
type scanner struct {
	all   []segment
	note  openingNote
	visit func(scanned) error // what it returns becomes a DamageError, if it is neither that nor an IdentityError

	unsynced bool // the log is opened in a mode in which a new segment has its name before it is synced

	marks    markReader
	cut      *Cut   // what a crash left at the end, behind the last record
	end      logEnd // of the records so far
	checksum uint32 // there
}

// logEnd is where a log ends.
type logEnd struct {
	segment int // which, of those there are
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
			"the file has %d bytes, a segment has at least %d: its end is missing, and perhaps records with it", r.size, segmentMin())}
	}
	for {
		at := r.offset
		rec, length, err := r.next()
		if errors.Is(err, io.EOF) {
			if r.count < headRecords {
				return flawed(r.offset, "the segment has no head")
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

// record takes the record at a position in segment i.
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

// errStop ends a scan.
var errStop = errors.New("no more")
