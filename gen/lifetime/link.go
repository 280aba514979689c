package lifetime

import (
	"go/token"
	"go/types"
)

// After t.byID = make(map[int]*Event), the instruction t.byID[1] = m stores m both in the new map
// and in memory behind the receiver. The mistake is this instruction alone, although the first one
// stores a map that reaches m. So links record for each value in local memory whether the
// instructions that store it there store it for the reader too.

// link is a value in local memory.
type link struct{ at, value place }

// wholes represents the structs and arrays that were stored as a whole, as a field.
var wholes = types.NewVar(token.NoPos, nil, "wholes", types.Typ[types.Invalid])

// stores are the instructions that store a value in local memory.
type stores struct {
	alone   bool         // one of them stores it only in local memory
	readers map[int]bool // who can read it after one of them
}

// Readers of memory that outlives the call. Others are the index of a parameter.
const (
	nobody     = -1
	everywhere = -2 // package variables, channels and goroutines
)

// reader is who can read a place that is not local.
func (o *object) reader() int {
	if o.external && o.global == "" && !o.channel {
		return o.origin.param
	}
	return everywhere
}

// recordLinks records that an instruction stores values at places.
func (u *unit) recordLinks(at, values places, whole bool) {
	if !u.linking {
		return
	}
	readers := make(map[int]bool)
	for p := range at {
		if p.object.global != "" || p.object.external && u.resets[p] == nil {
			readers[p.object.reader()] = true
		}
	}
	for p := range at {
		if p.object.external || p.object.global != "" {
			continue
		}
		if whole {
			p.field = wholes
		}
		for v := range values {
			s := u.links[link{p, v}]
			if s == nil {
				s = &stores{readers: make(map[int]bool)}
				u.links[link{p, v}] = s
			}
			s.alone = s.alone || len(readers) == 0
			for r := range readers {
				s.readers[r] = true
			}
		}
	}
}

// only reports whether each instruction that stores a value in local memory stores it
// for somebody else too, and one of them for the reader.
func (s *stores) only(reader int) bool { return s != nil && !s.alone && s.readers[reader] }
