package cache

import "time"

// view is how files and folders were when it first looked at each.
type view struct {
	racyFrom time.Time
	files    map[string]*seen // by absolute path
	listings map[string]listing
}

func newView(at time.Time) view {
	return view{racyFrom: at.Add(-racyWindow), files: make(map[string]*seen), listings: make(map[string]listing)}
}

// file returns how a file was when v first looked at it, which may be now.
func (v *view) file(path string) *seen {
	w := v.files[path]
	if w == nil {
		w = look(path, false, v.racyFrom)
		v.files[path] = w
	}
	return w
}

// list is file for the names of the Go files in a folder.
func (v *view) list(dir string) listing {
	l, ok := v.listings[dir]
	if !ok {
		l = list(dir)
		v.listings[dir] = l
	}
	return l
}

// seen is how a file was when a view first looked at it.
type seen struct {
	entry
	output   bool
	racyFrom time.Time
	read     bool // Sum is known
	failed   bool // it cannot be examined
}

// look looks at a file, and reads it only if it was changed so recently that its times
// may not show a further change.
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

// content reads the file unless it was read.
func (w *seen) content() {
	if w.read || w.failed {
		return
	}
	e, ok := observe(w.Path, w.output, w.racyFrom)
	w.entry, w.read, w.failed = e, ok, !ok
}

// compare reports whether the file is as e says, and whether e has learned newer
// times on the way. It reads the file only where its times do not suffice.
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
