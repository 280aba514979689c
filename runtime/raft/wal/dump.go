package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Record describes a record of a log, or the file of a snapshot.
type Record struct {
	File   string
	Offset int64  // of its frame
	Length int64  // of its frame
	Type   string // identity, checksum, entry, state, snapshot; snapshot file, incomplete
	Index  uint64 // of an entry or snapshot; the commit index of a state
	Term   uint64 // of an entry, state or snapshot
	Bytes  int    // of the data of an entry, or of the state in a snapshot file
	Detail string // other fields: the identity, the vote and the mark of a state, why a record is incomplete
}

// Report summarizes the content of a log.
type Report struct {
	Identity  Identity
	Segments  int
	Snapshots int    // files
	Records   uint64 // in the segments
	Entries   uint64 // in the segments, including entries that were replaced later
	First     uint64 // index of the first entry after the newest existing snapshot; 0: none
	Last      uint64 // index of the last entry, or of the snapshot
	Snapshot  uint64 // index of the newest snapshot
	Term      uint64 // of the state that a node starts with
	Commit    uint64 // of the state that a node starts with
	Cut       *Cut   // the incomplete end that Open will remove; nil: none
}

// Verify reads a whole log and checks it as [Open] does. It changes nothing and
// locks nothing. If a node writes the log at the same time, the end may seem
// incomplete. Verify needs little memory, even for a large log.
func Verify(dir string) (Report, error) { return Dump(dir, func(Record) error { return nil }) }

// Dump calls visit for each record of a log, in order, and for each snapshot file. It
// stops at the first error of visit. Dump checks the log as Verify does. If the log is
// damaged, visit receives all records before the damage, and Dump returns the error.
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
	stopped error // the error of visit
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
	note, err := noteOf(d.dir)
	if err != nil {
		return err
	}
	scan := newScanner(all, note, d.record)
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
			r.Detail = "its file was removed"
		}
		d.summary.snapshot(at, present)
	}
	return d.emit(r)
}

// vote describes a vote. It gives the name only if the node voted for itself, because
// the log does not contain the names of other nodes.
func (d *dump) vote(id uint64) string {
	if own := d.report.Identity; id == own.Node && own.Name != "" {
		return fmt.Sprintf("vote for %s, id %016x", own.node(), id)
	}
	return fmt.Sprintf("vote for id %016x", id)
}

// errMark is the error for a mark at a place that does not match its number or token.
func errMark(m mark, next uint64) error {
	return fmt.Errorf("the mark must have number %d and the token of this log, got number %d and token %x", next, m.number, m.token)
}

func errMalformed(kind recordType) error {
	return fmt.Errorf("the %v record is malformed", kind)
}

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

// snapshotFile checks a snapshot file that a node may start with. A damaged file that is
// newer than all snapshots in the log is ignored: the node crashed while it wrote the file.
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
		r.Detail = "incomplete and not needed"
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

// missingSnapshot is the error for a log that begins after a snapshot whose file is
// missing.
func missingSnapshot(dir string, s *summary) error {
	return &DamageError{
		File:   snapshotPath(filepath.Join(dir, snapshotDir), s.base),
		Reason: fmt.Sprintf("the file is missing, and the log begins after index %d", s.base.index),
	}
}
