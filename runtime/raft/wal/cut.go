package wal

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// Cut is what a crash left at the end of a log, and what opening the log removes.
type Cut struct {
	File    string
	Offset  int64
	Bytes   int64 // from there to the last byte that is not zero
	Reason  string
	Removed []string // segments behind File, of which nothing was synced, in the order of their removal
}

// flaw says what the flaw in segment i is: what a power failure leaves of records that
// were not synced, which becomes the cut, or damage.
func (s *scanner) handleFlaw(i int, r *segmentReader, flaw *flawError) error {
	damage := &DamageError{File: s.all[i].path, Offset: flaw.offset, Reason: flaw.reason}
	switch {
	case !s.marks.marked || !s.marks.known:
		return s.flawWithoutMarks(i, r, flaw, damage)
	case flaw.short, s.marks.strict && (i < len(s.all)-1 || r.count < headRecords):
		return damage
	}
	rest, err := r.rest()
	switch {
	case err != nil:
		return err
	case rest == nil, !s.torn(r, flaw, rest) && !bug.On(bug.TornAnywhere):
		return damage
	}
	switch synced, err := s.syncedBy(i, r.offset, rest); {
	case err != nil:
		return err
	case synced != "":
		damage.Reason += "; " + synced
		return damage
	}
	s.setCut(i, r, flaw, rest)
	return nil
}

// torn reports whether the flaw is nothing but missing sectors.
func (s *scanner) torn(r *segmentReader, flaw *flawError, rest []byte) bool {
	if flaw.crcDiff != 0 { // records are missing at the end of the segment before
		return bits.OnesCount32(flaw.crcDiff) > 1
	}
	return tail{b: rest, offset: r.offset, crc: r.crc, position: r.count}.torn(false)
}

// synced says which mark, of those behind the flaw, proves that the flawed record was
// synced.
func (s *scanner) syncedBy(i int, offset int64, rest []byte) (string, error) {
	if bug.On(bug.MarksIgnored) {
		return "", nil
	}
	for {
		if at, m, ok := findProof(rest, s.marks.token, s.marks.next); ok {
			return fmt.Sprintf("record %d, at offset %d of %s, says that it was synced", m.number, offset+int64(at), filepath.Base(s.all[i].path)), nil
		}
		if i++; i == len(s.all) {
			return "", nil
		}
		r, err := openSegment(s.all[i].path, 0, false)
		if err != nil {
			return "", err
		}
		offset = 0
		rest, err = r.rest()
		r.close()
		if err == nil && rest == nil {
			err = &DamageError{File: s.all[i].path, Reason: fmt.Sprintf("it has %d bytes, more than %d", r.size, tornMax)}
		}
		if err != nil {
			return "", err
		}
	}
}

// setCut has the log end at the flaw.
func (s *scanner) setCut(i int, r *segmentReader, flaw *flawError, rest []byte) {
	s.cut = &Cut{File: s.all[i].path, Offset: r.offset, Reason: flaw.reason}
	if r.count < headRecords { // a segment without a head is dropped: the log ends with the segment before
		s.cut.File, s.cut.Offset = s.all[s.end.segment].path, s.end.offset
	} else {
		s.end = logEnd{i, r.offset}
		s.cut.Bytes = int64(len(trimZeros(rest)))
	}
	for _, removed := range slices.Backward(s.all[s.end.segment+1:]) {
		s.cut.Removed = append(s.cut.Removed, removed.path)
	}
}

// flawWithoutMarks judges a flaw in front of the first mark, as versions without marks
// did: a whole record behind it proves damage, though it may belong to the same save.
func (s *scanner) flawWithoutMarks(i int, r *segmentReader, flaw *flawError, damage error) error {
	if i < len(s.all)-1 {
		return damage
	}
	var torn bool
	rest, err := r.rest()
	switch {
	case err != nil:
		return err
	case rest == nil:
		return damage
	case r.count < headRecords: // there before it is synced, in other modes than Always
		torn = s.unsynced && i > 0 && !tail{b: rest, position: headRecords}.hasRecord(0, false)
	default:
		torn = !flaw.short && (bug.On(bug.TornAnywhere) || tail{b: rest, offset: r.offset, crc: r.crc, position: r.count}.torn(true))
	}
	if !torn {
		return damage
	}
	s.setCut(i, r, flaw, rest)
	return nil
}

// rest returns what is in the file from the flaw on; nil where that is more than a
// crash can leave.
func (r *segmentReader) rest() ([]byte, error) {
	if r.size-r.offset > tornMax {
		return nil, nil
	}
	return r.peekAt(r.offset, r.size-r.offset)
}

func trimZeros(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// cutOff removes what a crash left, durably and so that a crash at any moment leaves the
// same end of the log: segments go first, the last one first; then the rest of the
// segment that the log ends in becomes zeros. Its length stays.
func (l *fileLog) cutOff(c Cut) error {
	l.options.Logger.Warn("the log ends in records that were not synced and are incomplete; they are cut off",
		"file", c.File, "offset", c.Offset, "bytes", c.Bytes, "segments removed", len(c.Removed), "reason", c.Reason)
	for _, path := range c.Removed {
		if err := errors.Join(os.Remove(path), syncDir(l.active.dir)); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(c.File, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(zeroFrom(file, c.Offset), file.Sync(), file.Close())
}

// zeroFrom zeros a file from an offset to its end. It writes where there is something
// else: the rest may have gigabytes. The file gets a length that the engine can read.
func zeroFrom(file *os.File, offset int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	zeros := make([]byte, readBytes)
	for b := make([]byte, readBytes); offset < info.Size(); offset += int64(len(b)) {
		b = b[:min(info.Size()-offset, readBytes)]
		if _, err := file.ReadAt(b, offset); err != nil {
			return err
		}
		if allZero(b) {
			continue
		}
		if _, err := file.WriteAt(zeros[:len(b)], offset); err != nil {
			return err
		}
	}
	_, err = file.WriteAt(zeros[:-info.Size()&(wordBytes-1)], info.Size())
	return err
}
