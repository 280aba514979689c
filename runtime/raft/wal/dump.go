package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Record is a record of a log, or the file of a snapshot, for people to read.
type Record struct {
	File   string
	Offset int64  // of its frame
	Length int64  // of its frame
	Type   string // identity, checksum, entry, state, snapshot; snapshot file, incomplete
	Index  uint64 // of an entry or snapshot; the commit index of a state
	Term   uint64 // of an entry, state or snapshot
	Bytes  int    // of an entry's data or a snapshot file's
	Detail string // what else there is: the identity, who was voted for, what is wrong with an incomplete record
}

// Report says what a log holds.
type Report struct {
	Identity  Identity
	Segments  int
	Snapshots int    // files
	Records   uint64 // in the segments
	Entries   uint64 // in the segments, also those that were replaced later
	First     uint64 // index of the first entry behind the newest snapshot that is there; 0: none
	Last      uint64 // index of the last entry, or of the snapshot
	Snapshot  uint64 // index of the newest snapshot
	Term      uint64 // of the state that a node begins with
	Commit    uint64 // likewise
	Cut       *Cut   // what opening the log will cut off
}

// Verify reads a whole log and checks it as [Open] does. It changes nothing and
// locks nothing: where a node writes the log meanwhile, the end may seem
// incomplete. It needs little memory, however large the log is.
func Verify(dir string) (Report, error) { return Dump(dir, func(Record) error { return nil }) }

// Dump calls visit for each record of a log, in order, and for each file of a
// snapshot. An error of visit ends it. All is checked as Verify does, so that what
// is before the damage is told before the damage is.
func Dump(dir string, visit func(Record) error) (Report, error) {
	d := dump{visit: visit, dir: dir, present: make(map[position]snapshotFile)}
	err := d.run()
	switch {
	case d.stopped != nil:
		err = d.stopped
	case err != nil && !errors.Is(err, ErrDamaged):
		err = fmt.Errorf("wal: cannot read the log in %s: %w", dir, err)
	}
	return d.report, err
}

type dump struct {
	dir     string
	visit   func(Record) error
	stopped error // of visit
	report  Report
	summary summary
	present map[position]snapshotFile
}

func (d *dump) run() error {
	files, err := snapshotFiles(filepath.Join(d.dir, snapshotDir))
	if err != nil {
		return err
	}
	for _, f := range files {
		d.present[f.at] = f
	}
	all, err := segments(filepath.Join(d.dir, segmentsDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(all) == 0 && len(files) > 0 {
		return missingSegments(d.dir)
	}
	if len(all) == 0 {
		if _, err := os.Stat(d.dir); err != nil {
			return err
		}
		return ErrNoLog
	}
	d.report.Segments, d.report.Snapshots = len(all), len(files)
	d.summary.unknown = all[0].seq > 0
	scan := newScanner(all, noteOf(d.dir), d.record)
	if err := scan.run(); err != nil {
		return err
	}
	if scan.cut != nil {
		if err := d.incomplete(*scan.cut); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := d.snapshotFile(f); err != nil {
			return err
		}
	}
	return d.finish()
}

func (d *dump) emit(r Record) error {
	if d.stopped = d.visit(r); d.stopped != nil {
		return errStop
	}
	return nil
}

func (d *dump) record(s scanned) error {
	d.report.Records++
	r := Record{File: s.file, Offset: s.offset, Length: s.length, Type: s.kind.String()}
	switch s.kind {
	case typeMetadata:
		id, ok := parseIdentity(s.data)
		if !ok {
			return errMalformed(s.kind)
		}
		d.report.Identity, r.Detail = id, fmt.Sprintf("%v, id %016x", id, id.Node)
	case typeEntry:
		e, ok := parseEntry(s.data)
		if !ok {
			return errMalformed(s.kind)
		}
		d.report.Entries++
		r.Index, r.Term, r.Bytes, r.Detail = e.index, e.term, len(e.data), entryDetail(e)
		if err := d.summary.entry(e.index, e.term); err != nil {
			return err
		}
	case typeState:
		h := s.state.hardState
		r.Index, r.Term = h.commit, h.term
		var details []string
		if h.vote != 0 {
			details = append(details, d.vote(h.vote))
		}
		if s.state.marked {
			details = append(details, s.state.mark.String())
		}
		r.Detail = strings.Join(details, "; ")
		d.summary.state = h
	case typeSnapshot:
		at, ok := parseSnapshot(s.data)
		if !ok {
			return errMalformed(s.kind)
		}
		r.Index, r.Term = at.index, at.term
		_, present := d.present[at]
		if at.index > 0 && !present {
			r.Detail = "its file is not there any more"
		}
		d.summary.snapshot(at, present)
	}
	return d.emit(r)
}

// vote names who was voted for, where it is the node itself: the log does not hold
// the names of others.
func (d *dump) vote(id uint64) string {
	if own := d.report.Identity; id == own.Node && own.Name != "" {
		return fmt.Sprintf("vote for %s, id %016x", own.node(), id)
	}
	return fmt.Sprintf("vote for id %016x", id)
}

// errMark says that a mark is not in the place that it was written for.
func errMark(m mark, next uint64) error {
	return fmt.Errorf("the mark must be that of record %d of this log, got that of record %d of a log with token %x", next, m.number, m.token)
}

func errMalformed(kind recordType) error { return fmt.Errorf("the %v is not one", kind) }

func entryDetail(e entryRecord) string {
	if e.kind == 0 {
		return ""
	}
	return "change of members"
}

func (d *dump) incomplete(c Cut) error {
	d.report.Cut = &c
	return d.emit(Record{File: c.File, Offset: c.Offset, Length: c.Bytes, Type: "incomplete", Detail: c.Reason})
}

// snapshotFile checks those that a node may begin with. One that the log does not
// know of was being written when the node crashed.
func (d *dump) snapshotFile(f snapshotFile) error {
	r := Record{File: f.path, Type: "snapshot file", Index: f.at.index, Term: f.at.term}
	if info, err := os.Stat(f.path); err == nil {
		r.Length = info.Size()
	}
	bytes, err := f.verify()
	switch {
	case err == nil:
		r.Bytes = int(bytes)
	case errors.Is(err, ErrDamaged) && f.at.index > d.summary.base.index:
		r.Detail = "not complete, and not needed"
	default:
		return err
	}
	return d.emit(r)
}

func (d *dump) finish() error {
	s := &d.summary
	if s.missing || s.unknown {
		return missingSnapshot(d.dir, s)
	}
	state := s.initialState()
	d.report.Term, d.report.Commit = state.term, state.commit
	d.report.Snapshot, d.report.Last = s.base.index, s.last
	if s.last > s.base.index {
		d.report.First = s.base.index + 1
	}
	return nil
}

// missingSnapshot says that the log does not begin with a snapshot that is there.
func missingSnapshot(dir string, s *summary) error {
	return &DamageError{
		File:   snapshotPath(filepath.Join(dir, snapshotDir), s.base),
		Reason: fmt.Sprintf("the file is missing, and the log begins behind index %d", s.base.index),
	}
}
