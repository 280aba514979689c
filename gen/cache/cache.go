package cache

import (
	"os"
	"path/filepath"
	"time"
)

// Cache is a folder of records, one for each key. The zero value has no folder:
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

// Build is a finished run of the generator for one key.
type Build struct {
	Key     string // the absolute path of the topology, and what else tells two results apart
	Inputs  Inputs
	Outputs []Output
	Value   string // what was found out and is written nowhere: warnings, for one
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
	Body []byte // what is on disk unless it was changed since
}

// Found is what a record says of a build that is fresh.
type Found struct {
	Value string
	Dirs  []string // of Inputs, absolute
}

// Batch is a run of the generator for any number of keys. It looks at each file and
// folder once before the builds read it, however many of them do. A batch is used by
// one goroutine.
type Batch struct {
	cache    *Cache
	identity Identity
	started  time.Time
	files    map[string]*before // by absolute path, as they were when they were first looked at
	listings map[string]listing // of folders, in the same way
	written  map[string]bool    // absolute paths of outputs, which are not inputs of Changed
}

// Start begins a batch.
func (c *Cache) Start(id Identity) *Batch {
	return &Batch{
		cache: c, identity: id, started: c.clock(),
		files: make(map[string]*before), listings: make(map[string]listing), written: make(map[string]bool),
	}
}

func (c *Cache) clock() time.Time {
	if c.now == nil { // the zero value
		return time.Now()
	}
	return c.now()
}

// usable reports whether there may be records.
func (b *Batch) usable() bool { return b.cache.dir != "" && b.identity.known }

// Recall returns what is recorded for a key, if that build read and wrote exactly
// what is on disk now. Otherwise what it read counts as watched.
func (b *Batch) Recall(key string) (found Found, fresh bool) {
	if !b.usable() {
		return Found{}, false
	}
	r, ok := b.cache.load(key)
	if !ok {
		return Found{}, false
	}
	found.Value = r.Value
	fresh = r.Identity == b.identity.sum
	for _, l := range r.Listings {
		now := b.list(l.Dir)
		fresh = fresh && !now.failed && now.sum() == l.Names
		found.Dirs = append(found.Dirs, l.Dir)
	}
	learned := false
	for i := range r.Inputs {
		same, better := b.file(r.Inputs[i].Path).compare(&r.Inputs[i])
		fresh, learned = fresh && same, learned || better
	}
	for i := range r.Outputs {
		if !fresh {
			return Found{}, false
		}
		was := look(r.Outputs[i].Path, true, b.started.Add(-racyWindow))
		same, better := was.compare(&r.Outputs[i])
		fresh, learned = same, learned || better
	}
	if fresh && learned { // next time the content need not be read
		b.cache.save(r)
	}
	return found, fresh
}

// Record remembers finished builds and returns how many it could. It could not if an
// input of the build has changed in the meantime, if an output is not what Body says,
// or if there is no cache to write to. An earlier record of the key then stays; it is
// still right for the state that it describes.
func (b *Batch) Record(builds ...Build) (recorded int) {
	if !b.usable() {
		return 0
	}
	s := newSettled(b, builds)
	for _, build := range builds {
		if r, ok := s.record(build); ok && b.cache.save(r) {
			recorded++
		}
	}
	if recorded > 0 {
		b.cache.prune()
	}
	return recorded
}
