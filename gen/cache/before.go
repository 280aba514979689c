package cache

import "time"

// before is how a file was when a batch first looked at it.
type before struct {
	entry
	output   bool
	racyFrom time.Time
	read     bool // Sum is known
	failed   bool // it cannot be examined
}

// look looks at a file, and reads it only if it was changed so recently that its times
// may not show a further change.
func look(path string, output bool, racyFrom time.Time) *before {
	w := &before{entry: entry{Path: path}, output: output, racyFrom: racyFrom}
	var err error
	w.Kind, w.Stat, err = examine(path, output)
	w.failed = err != nil
	if w.Kind == regular && !w.Stat.changed().Before(racyFrom) {
		w.content()
	}
	return w
}

// content reads the file unless it was read.
func (w *before) content() {
	if w.read || w.failed {
		return
	}
	e, ok := observe(w.Path, w.output, w.racyFrom)
	w.entry, w.read, w.failed = e, ok, !ok
}

// compare reports whether the file is as e says, and whether e has learned newer
// times on the way. It reads the file only where its times do not suffice.
func (w *before) compare(e *entry) (same, learned bool) {
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

// file returns how a file was when the batch first looked at it, which may be now.
func (b *Batch) file(path string) *before {
	w := b.files[path]
	if w == nil {
		w = look(path, false, b.started.Add(-racyWindow))
		b.files[path] = w
	}
	return w
}

// list is file for the names of the Go files in a folder.
func (b *Batch) list(dir string) listing {
	l, ok := b.listings[dir]
	if !ok {
		l = list(dir)
		b.listings[dir] = l
	}
	return l
}

// Watch notes how inputs are before the builds read them, so that Changed can tell a
// change while they ran from a change before them. Other inputs are judged by their
// times: a change less than 20 ms before Start counts as a change after it, and if such
// a file is removed, that is not noticed. Folders that builds may write into must be
// watched: their own times will not tell afterwards whether another program changed
// them too.
func (b *Batch) Watch(in Inputs) {
	for _, dir := range absolute(in.Dirs) {
		for _, file := range b.list(dir).paths() {
			b.file(file)
		}
	}
	for _, file := range absolute(in.Files) {
		b.file(file)
	}
}

// Writes names the files that the builds write or remove. They do not count as inputs
// of Changed.
func (b *Batch) Writes(outputs ...string) {
	for _, path := range absolute(outputs) {
		b.written[path] = true
	}
}
