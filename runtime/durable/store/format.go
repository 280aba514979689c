package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/topogen/topogen/runtime/durable/core"
)

// Names in the file. Each table is a bucket.
const (
	metaBucketName = "meta"
	formatKey      = "format"
	totalsKey      = "totals"
)

// formatVersion is the version of the format that this package writes. It also reads version
// 1, in which the totals have no number of their commit, and the first commit changes
// it to version 2.
const formatVersion = 2

// A format describes a file. It is JSON, so that later versions can add fields.
type format struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	ID      string `json:"id"` // drawn when the store is created
}

const kind = "durable promises"

func (f format) encode() []byte {
	b, _ := json.Marshal(f) // a struct of strings always encodes
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

func decodeFormat(b []byte) (format, error) {
	var f format
	n := len(b) - sumBytes
	if n < 0 || xxhash.Sum64(b[:n]) != binary.LittleEndian.Uint64(b[n:]) {
		return f, fmt.Errorf("the description of the format is damaged")
	}
	switch err := json.Unmarshal(b[:n], &f); {
	case err != nil || f.Kind != kind:
		return f, fmt.Errorf("the file describes itself as %q, so it is %w", f.Kind, ErrNotAStore)
	case f.Version < 1 || f.Version > formatVersion:
		return f, fmt.Errorf("version %d of the store's format: %w, versions 1 to %d are. Use the version of this program that wrote the store, or a newer one", f.Version, ErrFormat, formatVersion)
	}
	return f, nil
}

// bucketNames holds the names of the buckets of the tables.
var bucketNames = func() (names [Tables][]byte) {
	for t := range names {
		names[t] = fmt.Appendf(nil, "t%02x", t)
	}
	return names
}()

// tableOf returns the table of a bucket.
func tableOf(name []byte) (core.Table, bool) {
	for t := range bucketNames {
		if bytes.Equal(name, bucketNames[t]) {
			return core.Table(t), true
		}
	}
	return 0, false
}
