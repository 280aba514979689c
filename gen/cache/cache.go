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
	view                     // before the builds
	written  map[string]bool // absolute paths of outputs, which are not inputs of Changed
}

// Start begins a batch.
func (c *Cache) Start(id Identity) *Batch {
	now := c.clock()
	return &Batch{cache: c, identity: id, started: now, view: newView(now), written: make(map[string]bool)}
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
		was := look(r.Outputs[i].Path, true, b.racyFrom)
		same, better := was.compare(&r.Outputs[i])
		fresh, learned = same, learned || better
	}
	if fresh && learned { // next time the content need not be read
		b.cache.save(r)
	}
	return found, fresh
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
