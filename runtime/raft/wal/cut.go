package wal

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/runtime/internal/regular"
)

// Cut is the incomplete end of a log that a crash has left, and that Open removes.
type Cut struct {
	File    string
	Offset  int64
	Bytes   int64 // from Offset to the last byte that is not zero
	Reason  string
	Removed []string // later segments, all unsynced, in the order of their removal
}

// handleFlaw returns a DamageError if the flaw in segment i is damage. If a power failure can
// have left the flaw in unsynced records, it sets the cut instead.
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
	case rest == nil, !s.torn(r, flaw, rest):
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

// torn reports whether missing sectors alone explain the flaw.
func (s *scanner) torn(r *segmentReader, flaw *flawError, rest []byte) bool {
	if flaw.crcDiff != 0 { // records are missing at the end of the previous segment
		return bits.OnesCount32(flaw.crcDiff) > 1
	}
	return tail{b: rest, offset: r.offset, crc: r.crc, position: r.count}.torn(false)
}

// syncedBy searches the bytes after the flaw for a mark that proves that the flawed record
// was synced. It returns a text that names the mark, or "".
func (s *scanner) syncedBy(i int, offset int64, rest []byte) (string, error) {
	for {
		if at, m, ok := findProof(rest, s.marks.token, s.marks.next); ok {
			return fmt.Sprintf("the mark of record %d, at offset %d of %s, proves that this record was synced", m.number, offset+int64(at), filepath.Base(s.all[i].path)), nil
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
			err = &DamageError{File: s.all[i].path, Reason: fmt.Sprintf("the file must have at most %d bytes, got %d", tornMax, r.size)}
		}
		if err != nil {
			return "", err
		}
	}
}

// setCut ends the log at the flaw.
func (s *scanner) setCut(i int, r *segmentReader, flaw *flawError, rest []byte) {
	s.cut = &Cut{File: s.all[i].path, Offset: r.offset, Reason: flaw.reason}
	if r.count < headRecords { // a segment without a head is removed: the log ends with the previous segment
		s.cut.File, s.cut.Offset = s.all[s.end.segment].path, s.end.offset
	} else {
		s.end = logEnd{i, r.offset}
		s.cut.Bytes = int64(len(trimZeros(rest)))
	}
	for _, removed := range slices.Backward(s.all[s.end.segment+1:]) {
		s.cut.Removed = append(s.cut.Removed, removed.path)
	}
}

// flawWithoutMarks handles a flaw before the first mark, by the rule of versions without
// marks: a complete record after the flaw proves damage, although both records may belong
// to the same save.
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
	case r.count < headRecords: // in the modes Interval and None a segment exists before it is synced
		torn = s.unsynced && i > 0 && !tail{b: rest, position: headRecords}.hasRecord(0, false)
	default:
		torn = !flaw.short && tail{b: rest, offset: r.offset, crc: r.crc, position: r.count}.torn(true)
	}
	if !torn {
		return damage
	}
	s.setCut(i, r, flaw, rest)
	return nil
}

// rest returns the bytes of the file from the flaw on. It returns nil if there are more
// bytes than a crash can leave.
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

// cutOff removes the incomplete end of the log durably. It removes whole segments first,
// the last one first. Then it writes zeros to the rest of the segment in which the log ends,
// and keeps its length. After a crash in between, the next Open finds the same end of the log.
func (l *fileLog) cutOff(c Cut) error {
	l.options.Logger.Warn("the log ends with incomplete records that were not synced; removing them",
		"file", c.File, "offset", c.Offset, "bytes", c.Bytes, "segments removed", len(c.Removed), "reason", c.Reason)
	for _, path := range c.Removed {
		if err := removeDurably(path); err != nil {
			return err
		}
	}
	file, _, err := regular.OpenOwn(c.File, os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(zeroFrom(file, c.Offset), file.Sync(), file.Close())
}

// zeroFrom writes zeros to a file from an offset to its end. It writes only blocks that
// contain other bytes, because the rest may have gigabytes. Then it extends the file to a
// multiple of wordBytes, which the engine requires.
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
