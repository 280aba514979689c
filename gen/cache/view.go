package cache

import "time"

// view has the state of files and folders when each was first examined.
type view struct {
	racyFrom time.Time
	files    map[string]*seen // by absolute path
	listings map[string]listing
}

func newView(at time.Time) view {
	return view{racyFrom: at.Add(-racyWindow), files: make(map[string]*seen), listings: make(map[string]listing)}
}

// file returns the state of a file when v first examined it. The first call examines it.
func (v *view) file(path string) *seen {
	w := v.files[path]
	if w == nil {
		w = look(path, false, v.racyFrom)
		v.files[path] = w
	}
	return w
}

// list returns the Go files of a folder when v first examined it. The first call examines it.
func (v *view) list(dir string) listing {
	l, ok := v.listings[dir]
	if !ok {
		l = list(dir)
		v.listings[dir] = l
	}
	return l
}

// seen is the state of a file when a view first examined it.
type seen struct {
	entry
	output   bool
	racyFrom time.Time
	read     bool // Sum is known
	failed   bool // the file cannot be examined
}

// look examines a file. It reads the file only if the last change was so recent that a
// further change could have the same time.
func look(path string, output bool, racyFrom time.Time) *seen {
	w := &seen{entry: entry{Path: path}, output: output, racyFrom: racyFrom}
	var err error
	w.Kind, w.Stat, err = examine(path, output)
	w.failed = err != nil
	if w.Kind == regular && !w.Stat.changed().Before(racyFrom) {
		w.content()
	}
	return w
}

// content reads the file, once.
func (w *seen) content() {
	if w.read || w.failed {
		return
	}
	e, ok := observe(w.Path, w.output, w.racyFrom)
	w.entry, w.read, w.failed = e, ok, !ok
}

// compare reports whether the file matches e, and whether compare has updated the times in e.
// It reads the file only if the times do not suffice.
func (w *seen) compare(e *entry) (same, learned bool) {
	switch {
	case w.failed || w.Kind != e.Kind:
		return false, false
	case w.Kind != regular || w.Stat == e.Stat && !e.Racy:
		return true, false
	case w.Stat.Size != e.Stat.Size:
		return false, false
	}
	if w.content(); w.failed || w.Kind != regular || w.Sum != e.Sum {
		return false, false
	}
	learned = w.Stat != e.Stat || w.Racy != e.Racy
	*e = w.entry
	return true, learned
}
