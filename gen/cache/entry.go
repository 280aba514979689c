package cache

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// racyWindow is how long after a change a second one may show the same time:
	// FAT counts in 2 s, and no system in use counts coarser.
	racyWindow = 2 * time.Second

	// clockGrain is how far the time that the kernel gives a file may lag behind
	// the clock: its tick, 10 ms at 100 Hz, doubled.
	clockGrain = 20 * time.Millisecond

	// fileBytesMax bounds what is read of one file; a larger one is not recorded.
	fileBytesMax = 64 << 20
)

// kind is what stands at a path.
type kind byte

const (
	absent  kind = iota
	regular      // the only kind whose content counts
	other        // a folder, say: that it is none of the above counts
)

// entry is what a record knows of one path.
type entry struct {
	path   string
	kind   kind
	output bool // a symbolic link is not followed
	racy   bool // changed so recently that its times say nothing
	stat   stat
	sum    [sha256.Size]byte // of a regular file's content
}

// stat tells two versions of a file apart without reading it, mostly.
type stat struct {
	size         int64
	mtime, ctime int64 // ns since 1970; ctime is 0 where the system has none
	inode, dev   uint64
}

// changed is when the file last changed: ctime where there is one, because
// mtime can be set to anything.
func (s stat) changed() time.Time {
	if s.ctime != 0 {
		return time.Unix(0, s.ctime)
	}
	return time.Unix(0, s.mtime)
}

// examine looks at a path without reading it.
func examine(path string, output bool) (kind, stat, error) {
	look := os.Stat
	if output {
		look = os.Lstat
	}
	info, err := look(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, stat{}, nil
	case err != nil:
		return absent, stat{}, err
	case !info.Mode().IsRegular():
		s := statOf(info)
		s.size = 0 // of a folder: says nothing
		return other, s, nil
	}
	return regular, statOf(info), nil
}

// observe reads a path, and only then looks at its times: a change in between
// shows as a recent one and so as racy. It fails where the content cannot be
// had.
func observe(path string, output bool, racyFrom time.Time) (entry, bool) {
	e := entry{path: path, output: output}
	k, s, err := examine(path, output)
	if err != nil {
		return entry{}, false
	}
	if k == regular && s.size == 0 { // or one of the kernel's, which may be waited for
		e.sum = sha256.Sum256(nil)
	} else if k == regular {
		if e.sum, err = sumOf(path); err != nil {
			return entry{}, false
		}
	}
	if e.kind, e.stat, err = examine(path, output); err != nil || e.kind != k {
		return entry{}, false
	}
	e.racy = k == regular && !e.stat.changed().Before(racyFrom)
	return e, true
}

// compare reports whether the path is as it was, and whether e has learned
// newer times on the way.
func (e *entry) compare(racyFrom time.Time) (same, learned bool) {
	k, s, err := examine(e.path, e.output)
	if err != nil || k != e.kind {
		return false, false
	}
	if k != regular || s == e.stat && !e.racy {
		return true, false
	}
	if s.size != e.stat.size {
		return false, false
	}
	now, ok := observe(e.path, e.output, racyFrom)
	if !ok || now.kind != regular || now.sum != e.sum {
		return false, false
	}
	learned = now.stat != e.stat || now.racy != e.racy
	*e = now
	return true, learned
}

// changedSince reports whether the file may have changed after t.
func (e *entry) changedSince(t time.Time) bool {
	if e.kind == absent {
		return false
	}
	changed := e.stat.changed()
	grain := clockGrain
	if changed.Nanosecond() == 0 { // times of whole seconds: a coarse system
		grain = racyWindow
	}
	return !changed.Before(t.Add(-grain))
}

func sumOf(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, fileBytesMax+1))
	if err == nil && n > fileBytesMax {
		err = errors.New("too large")
	}
	h.Sum(sum[:0])
	return sum, err
}
