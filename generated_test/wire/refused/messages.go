// Package refused has messages that cannot be encoded; problems.txt says why.
package refused

import (
	"math/big"
	"sync"
	"unsafe"

	"github.com/topogen/topogen/generated_test/wire/other"
)

// Plain has fields that cannot leave the process.
type Plain struct {
	Channel   chan int
	Function  func()
	Interface any
	Pointer   unsafe.Pointer
	Mutex     sync.Mutex
	Big       *big.Int
	Good      int
}

// Deep has such fields at a greater depth.
type Deep struct {
	Lines []Line
	Map   map[string]*Line
	Keys  map[other.Key]string
	Twice [2][]chan int
}

// Line is a part of Deep and Again.
type Line struct{ Item func() }

// Again contains the same type as Deep.
type Again struct{ Other Line }

// Keys has keys without a meaning in another process.
type Keys struct {
	Pointers   map[*int]int
	Structs    map[*Line]int
	Interfaces map[error]int
}

// Large has elements that take much memory for few bytes.
type Large struct {
	Slice   [][5000]byte
	Map     map[int][600]int
	Pointer *[80][80]uint8
	Value   [80][80]uint8
	Tree    []Branch
	Array   [1 << 25]struct{}
}

// Branch is also large.
type Branch struct {
	Twigs [64]Twig
}

// Twig is a part of a Branch.
type Twig struct{ Leaves [9]int64 }

// Tags has tags that are not numbers.
type Tags struct {
	Zero  int    `topo:"0"`
	Word  int    `topo:"one"`
	Own   int    `topo:"19500"`
	High  int    `topo:"536870911"`
	Fine  int    `topo:"536870909"`
	Minus int    `topo:"-1"`
	Out   func() `topo:"-"`
}

// Foreign has types that the codecs cannot name.
type Foreign struct {
	Hidden  other.Hidden
	Phantom Phantom[func()]
}

// Phantom does not use its parameter.
type Phantom[T any] struct{ A int }

// Half can be marshaled, but not unmarshaled.
type Half struct{ F func() }

func (Half) MarshalBinary() ([]byte, error) { return nil, nil }

// Promoted has the promoted methods of a field, which ignore the other fields.
type Promoted struct {
	other.Money
	Beside chan int
}

// Good can be encoded.
type Good struct{ A int }
