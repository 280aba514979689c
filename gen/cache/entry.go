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
	// racyWindow is the time during which a second change may have the same file time as
	// the first: FAT has a resolution of 2 s, and no file system in use has a coarser one.
	racyWindow = 2 * time.Second

	// clockGrain is the time by which a file time may lag behind the clock: the kernel's
	// tick (10 ms at 100 Hz), doubled.
	clockGrain = 20 * time.Millisecond

	// fileBytesMax bounds the size of a file. A build with a larger file is not recorded.
	fileBytesMax = 64 << 20
)

// kind is the kind of file at a path.
type kind byte

const (
	absent  kind = iota
	regular      // the only kind whose contents matter
	other        // for example a folder
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

// entry is the state of one path in a record.
type entry struct {
	Path string
	Kind kind
	Racy bool // changed so recently that a further change could have the same times
	Stat stat
	Sum  sum // of a regular file's content
}

// stat usually distinguishes two versions of a file without reading it.
type stat struct {
	Size         int64
	Mtime, Ctime int64 // ns since 1970; Ctime is 0 on systems without it
	Inode, Dev   uint64
}

// changed is the time of the last change: Ctime if the system has it, because programs can
// set Mtime to any value.
func (s stat) changed() time.Time {
	if s.Ctime != 0 {
		return time.Unix(0, s.Ctime)
	}
	return time.Unix(0, s.Mtime)
}

// examine returns the kind and stat of a path. It follows a symbolic link, unless the path is
// an output.
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
		s.Size = 0 // the size of a folder has no meaning
		return other, s, nil
	}
	return regular, statOf(info), nil
}

// observe reads a path and examines its times afterwards, so that a change in between counts
// as recent and therefore racy. It fails if the contents cannot be read.
func observe(path string, output bool, racyFrom time.Time) (entry, bool) {
	e := entry{Path: path}
	k, s, err := examine(path, output)
	if err != nil {
		return entry{}, false
	}
	if k == regular && s.Size == 0 { // an empty file, or a file of the kernel, which may block
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
	if changed.Nanosecond() == 0 { // whole seconds: a file system with coarse times
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
