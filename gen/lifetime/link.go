package lifetime

import (
	"go/token"
	"go/types"
)

// After t.byID = make(map[int]*Event), the instruction t.byID[1] = m stores m both in the new map
// and in memory that the receiver reaches. Only the second instruction is a mistake, although the
// first instruction stores a map that reaches m. So the analysis records, for each value that is
// stored in local memory, whether each instruction that stores it there also stores it for the reader
// that the report is about.

// link is a value that was stored at a place in local memory.
type link struct{ at, value place }

// wholes is the field of a place at which a struct or an array was stored as a whole.
var wholes = types.NewVar(token.NoPos, nil, "wholes", types.Typ[types.Invalid])

// stores describes the instructions that store the value of a link.
type stores struct {
	alone   bool         // some instruction stores the value only in local memory
	readers map[int]bool // the readers that can read the value after some instruction
}

// A reader has access to memory that outlives the call. Other readers than these are the index of
// a parameter.
const (
	noReader   = -1
	everywhere = -2 // package variables, channels and goroutines
)

// reader returns the reader of an object that is not local.
func (o *object) reader() int {
	if o.external && o.global == "" && !o.channel {
		return o.origin.param
	}
	return everywhere
}

// recordLinks records that one instruction stores values at some places, as a whole or in a field.
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

// only reports whether each instruction that stores a value in local memory also stores it for
// a reader, and at least one instruction stores it for the given reader.
func (s *stores) only(reader int) bool { return s != nil && !s.alone && s.readers[reader] }
