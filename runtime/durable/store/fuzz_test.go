package store

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/memdir"
)

// FuzzStore verifies the file of a store of which any bytes were replaced, and decodes any bytes as
// each record.
func FuzzStore(f *testing.F) {
	dir := memdir.New(f)
	s, err := Open(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	err = s.Update(func(tx Tx) error { tx.Put(1, []byte("key"), []byte("value")); return nil })
	const pages = 16
	if err != nil || s.Close() != nil {
		f.Fatal(err)
	}
	file, err := os.Open(filepath.Join(dir, fileName))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := io.ReadAll(io.LimitReader(file, pages*pageBytes))
	if err != nil || file.Close() != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{}, true)
	f.Add(uint32(8), []byte{1, 0, 0xff, 0xff, 0xff, 0xff}, true) // the head of a page
	f.Add(uint32(headBytes), make([]byte, metaBytes), true)
	f.Add(uint32(3*pageBytes), bytes.Repeat([]byte{0xff}, 100), true)
	f.Add(uint32(0), []byte("text"), false)
	f.Fuzz(func(t *testing.T, at uint32, b []byte, sealed bool) {
		content := bytes.Clone(whole)
		copy(content[min(int(at), len(content)):], b)
		if sealed { // the fuzzer does not find checksums
			b = binary.LittleEndian.AppendUint64(bytes.Clone(b), xxhash.Sum64(b))
			for page := range 2 {
				meta := content[page*pageBytes+headBytes:][:metaBytes]
				sum := fnv.New64a()
				_, _ = sum.Write(meta[:metaBytes-8]) // never fails
				binary.LittleEndian.PutUint64(meta[metaBytes-8:], sum.Sum64())
			}
		}
		allocated.Within(t, 50*len(content), func() {
			_, _ = verify("store", bytes.NewReader(content), int64(len(content)))
			_, _ = decodeFormat(b)
			_, _, _ = decodeTotals(b)
			_, _ = parseNode(b)
		})
	})
}
