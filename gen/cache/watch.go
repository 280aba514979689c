package cache

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
)

// before is how an input was when the build began.
type before struct {
	entry
	read bool // sum is known
}

// Watch notes how inputs are now, before the build reads them, so that Changed can
// tell a change while the build ran from a change before it. These are the inputs
// that in names, the inputs of the build that is recorded under the key, and the Go
// files in the folders of Start. Other inputs are judged by their times: a change
// less than 20 ms before Watch counts as a change after it, and if such a file is
// removed, that is not noticed.
//
// A file is read only if it was changed so recently that its times may not show a
// further change.
func (b *Build) Watch(in Inputs) {
	files, dirs := slices.Clone(in.Files), slices.Clone(in.Dirs)
	if b.cache.dir != "" {
		if r, ok := b.cache.load(b.key); ok {
			for _, e := range r.inputs {
				files = append(files, e.path)
			}
			for _, l := range r.listings {
				dirs = append(dirs, l.dir)
			}
		}
	}
	b.started = b.cache.clock()
	b.before = make(map[string]before, len(files))
	for i := range b.listings {
		b.listings[i] = list(b.listings[i].dir)
	}
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil && b.listed(abs) == nil {
			b.listings = append(b.listings, list(abs))
		}
	}
	for _, l := range b.listings {
		for _, name := range l.names {
			files = append(files, filepath.Join(l.dir, name))
		}
	}
	for _, file := range files {
		if abs, err := filepath.Abs(file); err == nil {
			b.note(abs)
		}
	}
}

// note keeps how a file is. A file that cannot be examined is left out, and is later
// judged by its times.
func (b *Build) note(path string) {
	if _, ok := b.before[path]; ok {
		return
	}
	racyFrom := b.started.Add(-racyWindow)
	k, s, err := examine(path, false)
	if err != nil {
		return
	}
	if k != regular || s.changed().Before(racyFrom) {
		b.before[path] = before{entry: entry{path: path, kind: k, stat: s}}
		return
	}
	if e, ok := observe(path, false, racyFrom); ok {
		b.before[path] = before{entry: e, read: true}
	}
}

// listed returns the listing of a folder, or nil.
func (b *Build) listed(dir string) *listing {
	if i := slices.IndexFunc(b.listings, func(l listing) bool { return l.dir == dir }); i >= 0 {
		return &b.listings[i]
	}
	return nil
}

// Changed names an input that may not be as it was when the build read it, or is "".
// Outputs are the files that the build writes or removes; they do not count as inputs.
func (b *Build) Changed(in Inputs, outputs []string) string {
	written := make(map[string]bool, len(outputs))
	for _, out := range outputs {
		if abs, err := filepath.Abs(out); err == nil {
			written[abs] = true
		}
	}
	files, changed := b.inputs(nil, in, written)
	if changed != "" {
		return changed
	}
	content := b.content(in)
	for _, file := range files {
		if !b.unchanged(file, content) {
			return file
		}
	}
	return ""
}

// content returns the hashes of the files in in.Read.
func (b *Build) content(in Inputs) map[string][sha256.Size]byte {
	sums := make(map[string][sha256.Size]byte, len(in.Read))
	for path, body := range in.Read {
		if abs, err := filepath.Abs(path); err == nil {
			sums[abs] = sha256.Sum256(body)
		}
	}
	return sums
}

// unchanged reads a file only where its times do not suffice.
func (b *Build) unchanged(path string, content map[string][sha256.Size]byte) bool {
	_, known := content[path]
	was, noted := b.before[path]
	if known || noted && was.read {
		e, ok := observe(path, false, b.started)
		return ok && b.asBefore(&e, content)
	}
	k, s, err := examine(path, false)
	if err != nil {
		return false
	}
	return b.asBefore(&entry{path: path, kind: k, stat: s}, content)
}

// asBefore reports whether an input is as it was when the build read it.
func (b *Build) asBefore(e *entry, content map[string][sha256.Size]byte) bool {
	if sum, ok := content[e.path]; ok {
		return e.kind == regular && e.sum == sum
	}
	was, ok := b.before[e.path]
	switch {
	case !ok:
		return !e.changedSince(b.started)
	case e.kind != was.kind:
		return false
	case e.kind != regular:
		return true // that it is there, or is not, is all that counts
	case was.read:
		return e.sum == was.sum
	}
	return e.stat == was.stat
}

// inputs returns the paths of all files that the build depends on, sorted, without the
// files that it writes. It adds to r, unless r is nil, which files the folders hold.
// Changed names a folder that has other files than when the build began.
func (b *Build) inputs(r *record, in Inputs, written map[string]bool) (files []string, changed string) {
	files, changed = b.inputDirs(r, in.Dirs, written)
	if changed != "" {
		return nil, changed
	}
	for _, file := range in.Files {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, file
		}
		files = append(files, abs)
	}
	for file := range in.Read {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, file
		}
		files = append(files, abs)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	return slices.DeleteFunc(files, func(file string) bool { return written[file] }), ""
}

// inputDirs returns the Go files in the folders of inputs.
func (b *Build) inputDirs(r *record, dirs []string, written map[string]bool) (files []string, changed string) {
	abs := make([]string, 0, len(dirs)+len(b.listings))
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, dir
		}
		abs = append(abs, path)
	}
	for _, l := range b.listings[:b.own] { // a file that appears there may be read next time
		abs = append(abs, l.dir)
	}
	slices.Sort(abs)
	for _, dir := range slices.Compact(abs) {
		now := list(dir)
		if now.failed {
			return nil, dir
		}
		if l := b.listed(dir); l != nil {
			if l.failed || !slices.Equal(l.without(written), now.without(written)) {
				return nil, dir
			}
		} else if e, ok := observe(dir, false, b.started); !ok || e.changedSince(b.started) {
			return nil, dir
		}
		if r != nil {
			r.listings = append(r.listings, recordedListing{dir: dir, names: now.sum()})
		}
		for _, name := range now.names {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, ""
}
