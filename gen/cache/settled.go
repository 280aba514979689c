package cache

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
	"time"
)

// settled is how files are after the builds of a batch have read or written them. It
// looks at each file and folder once.
type settled struct {
	batch    *Batch
	racyFrom time.Time
	read     map[string]sum // what builds have read of files before the batch began
	wrote    map[string]sum // what builds have written
	files    map[string]*entry
	listings map[string]*listing // nil: the folder holds other files than before
}

func newSettled(b *Batch, builds []Build) *settled {
	s := &settled{
		batch: b, racyFrom: b.cache.clock().Add(-racyWindow), read: make(map[string]sum), wrote: make(map[string]sum),
		files: make(map[string]*entry), listings: make(map[string]*listing),
	}
	for _, build := range builds {
		for path, body := range build.Inputs.Read {
			if abs, err := filepath.Abs(path); err == nil {
				s.read[abs] = sha256.Sum256(body)
			}
		}
		for _, out := range build.Outputs {
			if abs, err := filepath.Abs(out.Path); err == nil {
				s.wrote[abs] = sha256.Sum256(out.Body)
				b.written[abs] = true
			}
		}
	}
	return s
}

// Changed names an input that may not be as it was when a build read it, or is "".
// In is what all builds of the batch have read.
func (b *Batch) Changed(in Inputs) string {
	s := newSettled(b, []Build{{Inputs: in}})
	files, _, changed := s.inputs(in)
	if changed != "" {
		return changed
	}
	for _, file := range files {
		if !b.written[file] && !s.unchanged(file) {
			return file
		}
	}
	return ""
}

// inputs returns the paths of all files that a build depends on, sorted, and the
// folders. Changed names a folder that has other files than when the batch began.
func (s *settled) inputs(in Inputs) (files []string, dirs []*listing, changed string) {
	for _, dir := range absolute(in.Dirs) {
		l := s.list(dir)
		if l == nil {
			return nil, nil, dir
		}
		dirs = append(dirs, l)
		files = append(files, l.paths()...)
	}
	files = append(files, in.Files...)
	for file := range in.Read {
		files = append(files, file)
	}
	return absolute(files), dirs, ""
}

// list returns the Go files in a folder, or nil if they are others than before, apart
// from outputs.
func (s *settled) list(dir string) *listing {
	if l, ok := s.listings[dir]; ok {
		return l
	}
	now := list(dir)
	same := !now.failed
	if was, ok := s.batch.listings[dir]; ok {
		same = same && !was.failed && slices.Equal(was.without(s.batch.written), now.without(s.batch.written))
	} else if same {
		k, folder, err := examine(dir, false)
		e := entry{Kind: k, Stat: folder}
		same = err == nil && !e.changedSince(s.batch.started)
	}
	l := &now
	if !same {
		l = nil
	}
	s.listings[dir] = l
	return l
}

// unchanged reports whether an input is as it was when the build read it. It reads the
// file only where its times do not suffice.
func (s *settled) unchanged(path string) bool {
	_, known := s.read[path]
	was := s.batch.files[path]
	if known || was != nil && was.read {
		e := s.observe(path)
		return e != nil && s.asBefore(e)
	}
	k, st, err := examine(path, false)
	return err == nil && s.asBefore(&entry{Path: path, Kind: k, Stat: st})
}

// observe reads a file. It returns nil where the content cannot be had.
func (s *settled) observe(path string) *entry {
	e, ok := s.files[path]
	if !ok {
		if now, ok := observe(path, false, s.racyFrom); ok {
			e = &now
		}
		s.files[path] = e
	}
	return e
}

// asBefore reports whether an input is as it was when the build read it.
func (s *settled) asBefore(e *entry) bool {
	if sum, ok := s.read[e.Path]; ok {
		return e.Kind == regular && e.Sum == sum
	}
	was := s.batch.files[e.Path]
	switch {
	case was == nil || was.failed:
		return !e.changedSince(s.batch.started)
	case e.Kind != was.Kind:
		return false
	case e.Kind != regular:
		return true // that it is there, or is not, is all that counts
	case was.read:
		return e.Sum == was.Sum
	}
	return e.Stat == was.Stat
}

// record makes the record of a build.
func (s *settled) record(build Build) (*record, bool) {
	r := &record{Key: build.Key, Identity: s.batch.identity.sum, Value: build.Value}
	own := make(map[string]bool, len(build.Outputs))
	for _, out := range build.Outputs {
		path, err := filepath.Abs(out.Path)
		if err != nil {
			return nil, false
		}
		e, ok := observe(path, true, s.racyFrom)
		if !ok || e.Kind != regular || e.Sum != s.wrote[path] {
			return nil, false
		}
		own[path] = true
		r.Outputs = append(r.Outputs, e)
	}
	files, dirs, changed := s.inputs(build.Inputs)
	if changed != "" {
		return nil, false
	}
	for _, l := range dirs {
		r.Listings = append(r.Listings, recordedListing{Dir: l.dir, Names: l.sum()})
	}
	for _, file := range files {
		if own[file] {
			continue
		}
		e := s.observe(file)
		if e == nil {
			return nil, false
		}
		// The build has seen what another one of the batch was about to write.
		if wrote, ok := s.wrote[file]; ok && e.Sum != wrote || !ok && !s.asBefore(e) {
			return nil, false
		}
		r.Inputs = append(r.Inputs, *e)
	}
	return r, true
}
