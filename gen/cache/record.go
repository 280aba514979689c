package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"
)

const (
	// magic names the format; a reader of another version finds no record.
	magic = "topogen cache 2\n"

	recordBytesMax = 8 << 20 // some 40,000 files
	entryBytesMin  = 4 + 3 + 5*8 + sha256.Size
	listBytesMin   = 4 + sha256.Size
)

// record is what is known of one finished build.
type record struct {
	key      string
	identity [sha256.Size]byte
	listings []recordedListing
	inputs   []entry
	outputs  []entry
	value    string // what was found out; "" for a build, whose result are its outputs
}

// recordedListing is a folder and the hash of the names of its Go files.
type recordedListing struct {
	dir   string
	names [sha256.Size]byte
}

// encode gives the magic, the fields one after the other (integers big endian,
// strings and lists after their length), and the SHA-256 of all that.
func (r *record) encode() []byte {
	b := []byte(magic)
	b = appendString(b, r.key)
	b = append(b, r.identity[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.listings)))
	for _, l := range r.listings {
		b = appendString(b, l.dir)
		b = append(b, l.names[:]...)
	}
	for _, entries := range [][]entry{r.inputs, r.outputs} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(entries)))
		for _, e := range entries {
			b = e.append(b)
		}
	}
	b = appendString(b, r.value)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func (e *entry) append(b []byte) []byte {
	b = appendString(b, e.path)
	b = append(b, byte(e.kind), flag(e.output), flag(e.racy))
	for _, n := range []uint64{uint64(e.stat.size), uint64(e.stat.mtime), uint64(e.stat.ctime), e.stat.inode, e.stat.dev} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return append(b, e.sum[:]...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// decode accepts exactly what encode writes.
func decode(b []byte) (*record, bool) {
	at := len(b) - sha256.Size
	if len(b) > recordBytesMax || at < len(magic) || string(b[:len(magic)]) != magic {
		return nil, false
	}
	if sum := sha256.Sum256(b[:at]); !bytes.Equal(sum[:], b[at:]) {
		return nil, false
	}
	return decodeFields(b[len(magic):at])
}

func decodeFields(b []byte) (*record, bool) {
	d := decoder{rest: b}
	r := &record{key: d.string()}
	d.bytes(r.identity[:])
	for range d.count(listBytesMin) {
		l := recordedListing{dir: d.path()}
		d.bytes(l.names[:])
		r.listings = append(r.listings, l)
	}
	r.inputs = d.entries(false)
	r.outputs = d.entries(true)
	r.value = d.string()
	if d.failed || len(d.rest) > 0 {
		return nil, false
	}
	return r, true
}

// decoder takes fields off the front. After the first that does not fit it
// returns zeros only.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) take(n int) []byte {
	if d.failed || n > len(d.rest) {
		d.failed, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) bytes(to []byte) { copy(to, d.take(len(to))) }

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) string() string {
	n := d.uint32()
	if int64(n) > int64(len(d.rest)) { // before int(n), which may overflow
		d.failed = true
		return ""
	}
	return string(d.take(int(n)))
}

// path is absolute: a record must not mean another file in another folder.
func (d *decoder) path() string {
	s := d.string()
	d.failed = d.failed || !filepath.IsAbs(s)
	return s
}

func (d *decoder) flag() bool {
	b := d.take(1)
	d.failed = d.failed || b[0] > 1 // take sets failed where it returns nothing
	return !d.failed && b[0] == 1
}

// count is the length of a list whose items have at least so many bytes; it
// fails before anything is allocated for a list that cannot be there.
func (d *decoder) count(bytesMin int) int {
	n := d.uint32()
	if int64(n)*int64(bytesMin) > int64(len(d.rest)) {
		d.failed = true
		return 0
	}
	return int(n)
}

func (d *decoder) entries(output bool) []entry {
	n := d.count(entryBytesMin)
	entries := make([]entry, 0, n)
	for range n {
		e := entry{path: d.path()}
		if b := d.take(1); b != nil {
			e.kind = kind(b[0])
		}
		e.output, e.racy = d.flag(), d.flag()
		e.stat = stat{size: int64(d.uint64()), mtime: int64(d.uint64()), ctime: int64(d.uint64()), inode: d.uint64(), dev: d.uint64()}
		d.bytes(e.sum[:])
		d.failed = d.failed || e.kind > other || e.output != output || output && e.kind != regular
		if d.failed {
			return nil
		}
		entries = append(entries, e)
	}
	return entries
}
