package cache

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"time"
)

// Cache is a folder of records, one for each key. Its zero value is no cache:
// nothing is ever fresh. It may be used by several goroutines and processes.
type Cache struct {
	dir string
	now func() time.Time
}

// Open returns the cache in dir, or in the user's cache folder where dir is
// empty. It touches nothing; a folder that does not exist yet is made when the
// first record is written.
func Open(dir string) *Cache {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return &Cache{}
		}
		dir = filepath.Join(user, "topogen")
	}
	return &Cache{dir: dir, now: time.Now}
}

// Build is one run of the generator for one key.
type Build struct {
	cache    *Cache
	key      string
	identity Identity
	started  time.Time
	listings []listing         // as they were at started
	own      int               // how many of the listings are of folders that this build may write into
	before   map[string]before // inputs as they were at started, after Watch
}

// Inputs names what a build read. Files that do not exist are inputs too, where
// their appearing would change the result. Paths are absolute, or relative to
// the working directory.
type Inputs struct {
	Files []string
	Dirs  []string // every Go file in them, not below them, is an input
	// Read has what the build has read of files that it read before Start: if such a
	// file has another content now, it has changed.
	Read map[string][]byte
}

// Output is a file that a build wrote or found right.
type Output struct {
	Path string
	Body []byte // what is on disk if nobody has touched it since
}

// Start begins a build. The key says which one: the absolute path of the
// topology and what else tells two results apart. Dirs are the folders that the
// build may write into; they are listed now, because their own times will not
// tell afterwards whether anybody else changed them too.
func (c *Cache) Start(key string, id Identity, dirs ...string) *Build {
	b := &Build{cache: c, key: key, identity: id, started: c.clock()}
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			b.listings = append(b.listings, list(abs))
		}
	}
	b.own = len(b.listings)
	return b
}

func (c *Cache) clock() time.Time {
	if c.now == nil { // the zero value
		return time.Now()
	}
	return c.now()
}

// Fresh reports whether a recorded build with this key read and wrote exactly
// what is on disk now.
func (b *Build) Fresh() bool {
	_, ok := b.Recall()
	return ok
}

// Recall is Fresh, and gives the value that was recorded.
func (b *Build) Recall() (value string, ok bool) {
	if b.cache.dir == "" || !b.identity.known {
		return "", false
	}
	r, ok := b.cache.load(b.key)
	if !ok || r.identity != b.identity.sum {
		return "", false
	}
	for _, l := range r.listings {
		if now := list(l.dir); now.failed || now.sum() != l.names {
			return "", false
		}
	}
	racyFrom := b.cache.now().Add(-racyWindow)
	learned := false
	for _, entries := range [][]entry{r.inputs, r.outputs} {
		for i := range entries {
			same, better := entries[i].compare(racyFrom)
			if !same {
				return "", false
			}
			learned = learned || better
		}
	}
	if learned { // next time the content need not be read
		b.cache.save(r)
	}
	return r.value, true
}

// Record remembers a finished build and reports whether it could: not when an
// input changed in the meantime, when an output is not what Body says, or when
// there is no cache to write to. An earlier record of the key then stays; it is
// still right for the state that it describes.
//
// Where several builds write together, each names the outputs of all: otherwise
// those of the others, in the same folder, look like inputs that have changed.
func (b *Build) Record(in Inputs, outputs []Output) bool {
	return b.record(in, outputs, "")
}

// RecordValue is Record for something that was found out and is written nowhere.
func (b *Build) RecordValue(in Inputs, value string) bool { return b.record(in, nil, value) }

func (b *Build) record(in Inputs, outputs []Output, value string) bool {
	if b.cache.dir == "" || !b.identity.known {
		return false
	}
	r := record{key: b.key, identity: b.identity.sum, value: value}
	racyFrom := b.cache.now().Add(-racyWindow)
	written := map[string]bool{}
	for _, out := range outputs {
		path, err := filepath.Abs(out.Path)
		if err != nil {
			return false
		}
		written[path] = true
		e, ok := observe(path, true, racyFrom)
		if !ok || e.kind != regular || e.sum != sha256.Sum256(out.Body) {
			return false
		}
		r.outputs = append(r.outputs, e)
	}
	files, changed := b.inputs(&r, in, written)
	if changed != "" {
		return false
	}
	content := b.content(in)
	for _, file := range files {
		e, ok := observe(file, false, racyFrom)
		if !ok || !b.asBefore(&e, content) {
			return false
		}
		r.inputs = append(r.inputs, e)
	}
	return b.cache.save(&r)
}
