package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"path/filepath"
	"slices"
	"unicode/utf8"
)

const (
	// magic names the format. A reader of another version treats the record as missing.
	magic = "topogen cache 3\n"

	recordBytesMax = 8 << 20 // about 30,000 files
)

// record describes one finished build.
type record struct {
	Key      string
	Identity sum
	Listings []recordedListing `json:",omitempty"`
	Inputs   []entry           `json:",omitempty"`
	Outputs  []entry           `json:",omitempty"`
	Value    string
}

// recordedListing is a folder and the hash of the names of its Go files.
type recordedListing struct {
	Dir   string
	Names sum
}

// encode returns the magic, the record as JSON, and the SHA-256 of both. It fails for paths
// that JSON cannot represent.
func (r *record) encode() ([]byte, bool) {
	body, err := json.Marshal(r)
	if err != nil || !r.valid() {
		return nil, false
	}
	b := append([]byte(magic), body...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), true
}

// decode accepts exactly the output of encode.
func decode(b []byte) (*record, bool) {
	at := len(b) - sha256.Size
	if len(b) > recordBytesMax || at < len(magic) || string(b[:len(magic)]) != magic {
		return nil, false
	}
	if sum := sha256.Sum256(b[:at]); !bytes.Equal(sum[:], b[at:]) {
		return nil, false
	}
	r := new(record)
	if json.Unmarshal(b[len(magic):at], r) != nil || !r.valid() {
		return nil, false
	}
	return r, true
}

// valid reports whether a record may be written or used.
func (r *record) valid() bool {
	// Paths must be absolute, so that a record means the same files in any folder.
	plain := func(path string) bool { return filepath.IsAbs(path) && utf8.ValidString(path) }
	return utf8.ValidString(r.Key) && utf8.ValidString(r.Value) &&
		!slices.ContainsFunc(r.Listings, func(l recordedListing) bool { return !plain(l.Dir) }) &&
		!slices.ContainsFunc(r.Inputs, func(e entry) bool { return !plain(e.Path) || e.Kind > other }) &&
		!slices.ContainsFunc(r.Outputs, func(e entry) bool { return !plain(e.Path) || e.Kind != regular })
}
