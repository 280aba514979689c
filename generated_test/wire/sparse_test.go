package wire

import (
	"errors"
	"reflect"
	"runtime/debug"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/wire"
)

// sparse is the codec of Sparse.
var sparse = of("Sparse", appendSparseWhole, consumeSparseWhole)

// TestSparseIsRefused checks small encodings of large elements: without a limit a frame of 60
// MB could demand 30 GB, a kilobyte for each two bytes.
func TestSparseIsRefused(t *testing.T) {
	size := speed.Pick(t, 64<<10, 4<<20, 4<<20)
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for name, element := range map[string]string{
		"a list":              "\x12\x00",
		"a list of pointers":  "\x1a\x00",
		"a list of arrays":    "\x22\x00",
		"a map":               "\x2a\x00",
		"large keys":          "\x32\x00",
		"lists within a list": "\x5a\x02\x0a\x00",
		"two lists in turn":   "\x12\x00\x62\x00",
	} {
		b := slices.Repeat([]byte(element), size/len(element))
		bytes, err := allocated(sparse, b)
		if most := allocatedMax(sparse, len(b)); bytes > most || !errors.Is(err, wire.ErrSparse) {
			t.Errorf("%s: %d bytes allocate %d, %v; at most %d are allowed", name, len(b), bytes, err, most)
		}
	}
}

// TestHugeSparseFrame checks the largest frame: memory is only allocated within the room.
func TestHugeSparseFrame(t *testing.T) {
	b := slices.Repeat([]byte("\x12\x00"), speed.Pick(t, 1<<20, 30<<20, 30<<20))
	bytes, err := allocated(sparse, b)
	if !errors.Is(err, wire.ErrSparse) || bytes > 1<<20 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
}

// TestSparseNests checks that nested lists share one room.
func TestSparseNests(t *testing.T) {
	items := slices.Repeat([]byte("\x12\x00"), 1000) // almost all of the minimum room
	var heads [][]byte                               // of the nested lists, the innermost first
	length := len(items)
	for range 500 {
		head := protowire.AppendVarint([]byte{0x52}, uint64(length))
		heads = append(heads, head)
		length += len(head) + len(items)
	}
	slices.Reverse(heads)
	b := append(slices.Concat(heads...), slices.Repeat(items, len(heads)+1)...)
	bytes, err := allocated(sparse, b)
	if most := allocatedMax(sparse, len(b)); bytes > most || !errors.Is(err, wire.ErrSparse) {
		t.Errorf("%d bytes allocate %d, %v; at most %d are allowed", len(b), bytes, err, most)
	}
}

// TestSparseBothWays checks that encoding and decoding have the same limit on elements.
func TestSparseBothWays(t *testing.T) {
	wide := &Wide{}
	for name, message := range map[string]func(n int) *Sparse{
		"a list":              func(n int) *Sparse { return &Sparse{Again: make([]Wide, n)} },
		"one pointer for all": func(n int) *Sparse { return &Sparse{Pointers: slices.Repeat([]*Wide{wide}, n)} },
		"a map": func(n int) *Sparse {
			m := &Sparse{Map: map[int]Wide{}}
			for i := range n {
				m.Map[i] = Wide{}
			}
			return m
		},
		"lists within a list": func(n int) *Sparse {
			m := &Sparse{}
			for range n {
				m.Inner = append(m.Inner, struct{ Items []Wide }{make([]Wide, 1)})
			}
			return m
		},
		"paid by other bytes": func(n int) *Sparse {
			return &Sparse{Words: [][40]string{{string(make([]byte, 100<<10))}}, Again: make([]Wide, n)}
		},
		"a chain": func(n int) *Sparse {
			m := &Sparse{}
			for range n % 900 {
				m = &Sparse{Next: m, One: wide, Array: new([200]int64), Blob: new([200]byte)}
			}
			return m
		},
	} {
		fits, refused := 0, 0
		for _, n := range []int{1, 899, 1015, 1016, 1017, 1023, 1024, 1025, 6400, 8000} {
			m := message(n)
			b, err := appendSparseWhole([]byte("before"), m)
			var got Sparse
			read := consumeSparseWhole(b[len("before"):], &got)
			if errors.Is(err, wire.ErrSparse) != errors.Is(read, wire.ErrSparse) {
				t.Errorf("%s of %d: writing says %v, reading %v", name, n, err, read)
			}
			if err != nil {
				refused++
				continue
			}
			if fits++; !reflect.DeepEqual(&got, m) {
				t.Errorf("%s of %d: the decoded message differs", name, n)
			}
		}
		if fits == 0 || refused == 0 && name != "a chain" {
			t.Errorf("%s: %d fit, %d do not", name, fits, refused)
		}
	}
	if b, err := appendSparseWhole(nil, &Sparse{Again: make([]Wide, 2000)}); err == nil || err.Error() != "wire: Sparse: it has too many large elements for its length in bytes" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
