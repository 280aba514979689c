package cache

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
)

// finalState is the state of files after the builds of a batch.
type finalState struct {
	view
	batch *Batch
	read  map[string]sum // contents that builds read before the batch began
	wrote map[string]sum // contents that builds wrote
}

func newSettled(b *Batch, builds []Build) *finalState {
	s := &finalState{batch: b, view: newView(b.cache.clock()), read: make(map[string]sum), wrote: make(map[string]sum)}
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

// Changed returns the name of an input that may have changed since a build read it, or "".
// in has the inputs of all builds of the batch.
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

// inputs returns the folders of a build and the sorted paths of all its input files. changed
// is a folder whose list of files has changed since the batch began, or "".
func (s *finalState) inputs(in Inputs) (files []string, dirs []listing, changed string) {
	for _, dir := range absolute(in.Dirs) {
		l := s.list(dir)
		if !s.sameFiles(l) {
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

// sameFiles reports whether a folder has the same Go files as before, except for outputs.
func (s *finalState) sameFiles(now listing) bool {
	if now.failed {
		return false
	}
	if was, ok := s.batch.listings[now.dir]; ok {
		return !was.failed && slices.Equal(was.without(s.batch.written), now.without(s.batch.written))
	}
	folder := s.file(now.dir)
	return !folder.failed && !folder.changedSince(s.batch.started)
}

// unchanged reports whether an input is the same as when the build read it. It reads the
// file only if its times are not enough.
func (s *finalState) unchanged(path string) bool {
	now, was := s.file(path), s.batch.files[path]
	sum, read := s.read[path]
	if read || was != nil && was.read {
		now.content()
	}
	switch {
	case now.failed:
		return false
	case read:
		return now.Kind == regular && now.Sum == sum
	case was == nil || was.failed:
		return !now.changedSince(s.batch.started)
	case now.Kind != was.Kind:
		return false
	case now.Kind != regular:
		return true // only its existence matters
	case was.read:
		return now.Sum == was.Sum
	}
	return now.Stat == was.Stat
}

// record makes the record of a build.
func (s *finalState) record(build Build) (*record, bool) {
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
		now := s.file(file)
		now.content()
		// The file may be the output of another build of the batch, and this build has used
		// the contents before they were written.
		if wrote, ok := s.wrote[file]; now.failed || ok && now.Sum != wrote || !ok && !s.unchanged(file) {
			return nil, false
		}
		r.Inputs = append(r.Inputs, now.entry)
	}
	return r, true
}
