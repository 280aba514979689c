// Package sizes sends messages of several sizes, with and without pointers.
package sizes

import "github.com/topogen/topogen/runtime/topo"

//go:generate go tool topogen build

// The message types have the given number of bytes. Those with pointers are scanned by
// the garbage collector and cleared after use.
type (
	Plain8      struct{ N uint64 }
	Plain64     struct{ N [8]uint64 }
	Plain1024   struct{ N [128]uint64 }
	Pointer8    struct{ P *uint64 }
	Pointer64   struct{ P [8]*uint64 }
	Pointer1024 struct{ P [128]*uint64 }
)

// Kind selects a message type.
type Kind int

// The kinds without pointers come first.
const (
	KindPlain8 Kind = iota
	KindPlain64
	KindPlain1024
	KindPointer8
	KindPointer64
	KindPointer1024
)

// Source sends a number of messages of one kind. All pointers point to the same number.
type Source struct {
	kind   Kind
	left   int
	number uint64
}

func (s *Source) Ping(out *SourceSender) error {
	if s.left == 0 {
		return topo.Done
	}
	s.left--
	switch n := uint64(s.left); s.kind {
	case KindPlain8:
		return out.SendPlain8(Plain8{n})
	case KindPlain64:
		return out.SendPlain64(Plain64{[8]uint64{n}})
	case KindPlain1024:
		return out.SendPlain1024(Plain1024{[128]uint64{n}})
	case KindPointer8:
		return out.SendPointer8(Pointer8{&s.number})
	case KindPointer64:
		return out.SendPointer64(Pointer64{[8]*uint64{&s.number}})
	default:
		return out.SendPointer1024(Pointer1024{[128]*uint64{&s.number}})
	}
}

// Sink counts messages.
type Sink struct{ Handled int }

// Each handler reads its message, like a handler that does some work.

//go:noinline
func (s *Sink) ReceivePlain8(m *Plain8) { s.handle(m.N != 1<<63) }

//go:noinline
func (s *Sink) ReceivePlain64(m *Plain64) { s.handle(m.N[0] != 1<<63) }

//go:noinline
func (s *Sink) ReceivePlain1024(m *Plain1024) { s.handle(m.N[0] != 1<<63) }

//go:noinline
func (s *Sink) ReceivePointer8(m *Pointer8) { s.handle(m.P != nil) }

//go:noinline
func (s *Sink) ReceivePointer64(m *Pointer64) { s.handle(m.P[0] != nil) }

//go:noinline
func (s *Sink) ReceivePointer1024(m *Pointer1024) { s.handle(m.P[0] != nil) }

func (s *Sink) handle(whole bool) {
	if whole {
		s.Handled++
	}
}
