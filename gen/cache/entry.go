package cache

import (
	"crypto/sha256"
	"encoding/hex"
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

// sum is the SHA-256 of a file's content.
type sum [sha256.Size]byte

// MarshalText returns the sum in hexadecimal.
func (s sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads what MarshalText returns.
func (s *sum) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(s) {
		return errors.New("not a SHA-256")
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// entry is what a record knows of one path.
type entry struct {
	Path string
	Kind kind
	Racy bool // changed so recently that its times say nothing
	Stat stat
	Sum  sum // of a regular file's content
}

// stat tells two versions of a file apart without reading it, mostly.
type stat struct {
	Size         int64
	Mtime, Ctime int64 // ns since 1970; Ctime is 0 where the system has none
	Inode, Dev   uint64
}

// changed is when the file last changed: Ctime where there is one, because
// Mtime can be set to anything.
func (s stat) changed() time.Time {
	if s.Ctime != 0 {
		return time.Unix(0, s.Ctime)
	}
	return time.Unix(0, s.Mtime)
}

// examine looks at a path without reading it. An output that is a symbolic link is
// not followed.
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
		s.Size = 0 // of a folder: says nothing
		return other, s, nil
	}
	return regular, statOf(info), nil
}

// observe reads a path, and only then looks at its times: a change in between
// shows as a recent one and so as racy. It fails where the content cannot be
// had.
func observe(path string, output bool, racyFrom time.Time) (entry, bool) {
	e := entry{Path: path}
	k, s, err := examine(path, output)
	if err != nil {
		return entry{}, false
	}
	if k == regular && s.Size == 0 { // or one of the kernel's, which may be waited for
		e.Sum = sha256.Sum256(nil)
	} else if k == regular {
		if e.Sum, err = sumOf(path); err != nil {
			return entry{}, false
		}
	}
	if e.Kind, e.Stat, err = examine(path, output); err != nil || e.Kind != k {
		return entry{}, false
	}
	e.Racy = k == regular && !e.Stat.changed().Before(racyFrom)
	return e, true
}

// changedSince reports whether the file may have changed after t.
func (e *entry) changedSince(t time.Time) bool {
	if e.Kind == absent {
		return false
	}
	changed := e.Stat.changed()
	grain := clockGrain
	if changed.Nanosecond() == 0 { // times of whole seconds: a coarse system
		grain = racyWindow
	}
	return !changed.Before(t.Add(-grain))
}

func sumOf(path string) (s sum, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, fileBytesMax+1))
	if err == nil && n > fileBytesMax {
		err = errors.New("too large")
	}
	h.Sum(s[:0])
	return s, err
}
