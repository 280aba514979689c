package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/topogen/topogen/gen/internal/bounded"
)

const (
	recordSuffix = ".record"
	tempPrefix   = "new-"
	tempSuffix   = ".tmp"

	recordsMax = 4_096     // more topologies than one person works on; about 40 MB
	bytesMax   = 256 << 20 // of all records
	tempAgeMax = time.Hour // a killed process has left older files
)

func (c *Cache) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:16])+recordSuffix)
}

func (c *Cache) load(key string) (*record, bool) {
	content, err := bounded.ReadFile(c.file(key), recordBytesMax)
	r, ok := decode(content)
	if err != nil || !ok || r.Key != key {
		return nil, false
	}
	return r, true
}

// save replaces a record. It does not sync: a record that a power failure truncates fails its
// checksum.
func (c *Cache) save(r *record) bool {
	content, ok := r.encode()
	if !ok || len(content) > recordBytesMax || os.MkdirAll(c.dir, 0o700) != nil {
		return false
	}
	f, err := os.CreateTemp(c.dir, tempPrefix+"*"+tempSuffix)
	if err != nil {
		return false
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.file(r.Key))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return false
	}
	return true
}

// prune removes the oldest records over recordsMax and bytesMax, and stray temporaries.
func (c *Cache) prune() { c.pruneTo(recordsMax) }

func (c *Cache) pruneTo(most int) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type aged struct {
		name string
		time time.Time
		size int64
	}
	var records []aged
	for _, entry := range entries {
		name := entry.Name()
		isTemp := strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
		if !isTemp && !strings.HasSuffix(name, recordSuffix) {
			continue
		}
		info, err := entry.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case !isTemp:
			records = append(records, aged{name, info.ModTime(), info.Size()})
		case c.now().Sub(info.ModTime()) > tempAgeMax:
			_ = os.Remove(filepath.Join(c.dir, name))
		}
	}
	slices.SortFunc(records, func(a, b aged) int { return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.name, b.name)) })
	total := int64(0)
	for i, r := range records {
		if total += r.size; i >= most || total > bytesMax {
			_ = os.Remove(filepath.Join(c.dir, r.name))
		}
	}
}
