package cache

import (
	"os"
	"path/filepath"
	"time"
)

// Cache is a folder of records, one for each key. A build is fresh if its record shows that
// nothing has changed since. The zero value has no folder, so it finds no build fresh. Several
// goroutines and processes may use a Cache.
type Cache struct {
	dir string
	now func() time.Time
}

// Open returns the cache in dir, or in the user's cache folder if dir is empty. It does not
// access the disk. A missing folder is made when the first record is written.
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
	Key     string // the absolute path of the topology, and everything else that distinguishes results
	Inputs  Inputs
	Outputs []Output
	Value   string // results that are not in output files, such as warnings
}

// Inputs names the files and folders that a build read. A file that does not exist is an
// input too, if its creation would change the result. Paths are absolute, or relative to
// the working directory.
type Inputs struct {
	Files []string
	Dirs  []string // every Go file in them, not below them, is an input
	// Read has the contents of files that were read before Cache.Start. If the contents of
	// such a file differ now, the file has changed.
	Read map[string][]byte
}

// Output is a file that a build wrote or found up to date.
type Output struct {
	Path string
	Body []byte // the contents on disk, unless another program has changed the file
}

// Found is the result of a fresh build, from its record.
type Found struct {
	Value string
	Dirs  []string // of Inputs, absolute
}

// Batch is a run of the generator for any number of keys. It examines each file and folder
// once before the builds, even if several builds read it. Only one goroutine may use a Batch.
type Batch struct {
	cache    *Cache
	identity Identity
	started  time.Time
	view                     // the state of files and folders before the builds
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

// Recall returns the result of the recorded build of a key. fresh is true if the inputs and
// outputs of that build are unchanged. Otherwise the inputs of the record count as watched.
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
		now := look(r.Outputs[i].Path, true, b.racyFrom)
		same, better := now.compare(&r.Outputs[i])
		fresh, learned = same, learned || better
	}
	if fresh && learned { // saves reading the contents next time
		b.cache.save(r)
	}
	return found, fresh
}

// Watch records the state of inputs before the builds read them, so that Changed can
// distinguish a change during the builds from an earlier one.
//
// For inputs that are not watched, Changed uses file times: a change less than 20 ms before
// Start counts as a change after it, and a removal is not noticed. Folders into which builds
// may write must be watched, because after a write their times do not show whether another
// program also changed them.
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

// Writes names the files that the builds write or remove. Changed ignores them.
func (b *Batch) Writes(outputs ...string) {
	for _, path := range absolute(outputs) {
		b.written[path] = true
	}
}

// Record writes records of finished builds and returns their number. It writes no record if
// an input of the build has changed in the meantime, if an output differs from Body, or if
// the cache cannot be written. Then an earlier record of the key remains; it is still
// correct for the state that it describes.
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
