// Package wire has messages with one field of each form that a codec knows, and
// the generated codecs:
//
//	go test ./gen/wire -update
package wire

import (
	"net/netip"
	"time"

	"github.com/topogen/topogen/generated_test/wire/other"
)

// Order is a typical message.
type Order struct {
	Account string
	Cents   int
	Lines   []Line
	Paid    bool
	Note    []byte
	Prices  map[string]int64
	At      time.Time
	Limit   *int
}

// Line is a part of an Order.
type Line struct {
	Item  string
	Count uint32
	Price float64
}

// Scalars has all basic types, and one of each with a name.
type Scalars struct {
	Bool    bool
	Int     int
	Int8    int8
	Int16   int16
	Int32   int32
	Int64   int64
	Uint    uint
	Uint8   uint8
	Uint16  uint16
	Uint32  uint32
	Uint64  uint64
	Uintptr uintptr
	Float32 float32
	Float64 float64
	Small   complex64
	Complex complex128
	String  string
	Rune    rune
	Bytes   []byte
	Array   [4]byte
	Flag    Flag
	Level   other.Level
	Mask    Mask
	Ratio   Ratio
	Wave    Wave
	Name    Name
	Raw     Raw
	Digest  Digest
	At      time.Time
	Took    time.Duration
	Stamp   Stamp
	Money   other.Money
	Addr    netip.Addr
	hidden  int
	_       int
	Skipped chan int `topo:"-"`
}

// Types with names.
type (
	Flag   bool
	Mask   uint16
	Ratio  float32
	Wave   complex64
	Name   string
	Raw    []byte
	Digest [3]byte
	Stamp  time.Time
	Small  uint8
	Matrix [][]float64
	Tree   map[string]Tree
	Chain  *Chain
	Pair   [2]int
)

// Lists has slices and arrays.
type Lists struct {
	Bools    []bool
	Ints     []int
	Levels   []other.Level
	Uints    []uint64
	Smalls   []Small
	Floats   []float32
	Doubles  []float64
	Names    []Name
	Blobs    [][]byte
	Waves    []complex128
	Times    []time.Time
	Spans    []time.Duration
	Moneys   []other.Money
	Lines    []Line
	Pointers []*Line
	Numbers  []*int
	Matrix   Matrix
	Maps     []map[string]int
	Digests  []Digest
	Pairs    []Pair
	Empty    []struct{}
	Flags    [3]bool
	Vector   [3]float64
	Corner   [2]Line
	Words    [2]string
	Board    [2][2]int8
	None     [0]int
}

// Maps has maps of all sorts.
type Maps struct {
	Names    map[Name]Flag
	Ints     map[int32]string
	Flags    map[bool]uint8
	Lines    map[string]Line
	Pointers map[string]*Line
	Lists    map[string][]int
	Nested   map[string]map[string]float64
	Floats   map[float64]int
	Digests  map[Digest]time.Duration
	Points   map[Point]Point
	Addrs    map[netip.Addr][]byte
	Tree     Tree
}

// Point can be a key.
type Point struct{ X, Y int }

// Pointers has pointers, nil and not.
type Pointers struct {
	Bool   *bool
	Int    *int
	Name   *Name
	Bytes  *[]byte
	Digest *Digest
	Line   *Line
	Time   *time.Time
	Span   *time.Duration
	Money  *other.Money
	List   *[]int
	Map    *map[string]int
	Twice  **int
	Chain  Chain
}

// Nested has structs in structs.
type Nested struct {
	Point
	*Embedded
	Inner struct {
		A int
		B []struct{ C string }
	}
	Page  other.Page[Line]
	Words other.Page[string]
	Zero  Line
	inner
}

type Embedded struct{ Depth int }

type inner struct{ kept string }

// Node contains itself.
type Node struct {
	Value    int
	Next     *Node
	Children []Node
	Named    map[string]*Node
}

// Sparse has large elements of all kinds; two bytes can demand each of them.
type Sparse struct {
	N        int
	Items    []Big
	Pointers []*Wide
	Words    [][40]string
	Map      map[int]Wide
	Keys     map[[20]int]string
	One      *Wide
	Array    *[200]int64
	Blob     *[200]byte
	Next     *Sparse
	Inner    []struct{ Items []Wide }
	Again    []Wide
}

// Big takes a kilobyte of memory, and its encoding has at least 128 bytes.
type Big struct{ A [128]int64 }

// Wide takes a kilobyte of memory, and its zero value has an empty encoding.
type (
	Wide  struct{ A, B, C, D Half }
	Half  struct{ A, B, C, D Eight }
	Eight struct{ A, B, C, D, E, F, G, H int64 }
)

// Numbered has field numbers in tags, some of two bytes and more.
type Numbered struct {
	A string `topo:"7"`
	B string
	C *Line          `topo:"100"`
	D []int          `topo:"3000"`
	E map[string]int `topo:"536870900"`
	F Line           `topo:"18999"`
	G int
}
