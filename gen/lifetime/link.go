package lifetime

import (
	"go/token"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/go/ssa"
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
			u.recordLink(link{p, v}, len(readers) == 0, slices.Collect(maps.Keys(readers))...)
		}
	}
}

// recordLink records an instruction that stores the value of a link, alone or also for readers.
func (u *unit) recordLink(l link, alone bool, readers ...int) {
	s := u.links[l]
	if s == nil {
		s = &stores{readers: make(map[int]bool)}
		u.links[l] = s
	}
	s.alone = s.alone || alone
	for _, r := range readers {
		s.readers[r] = true
	}
}

// only reports whether each instruction that stores a value in local memory also stores it for
// a reader, and at least one instruction stores it for the given reader.
func (s *stores) only(reader int) bool { return s != nil && !s.alone && s.readers[reader] }

// A list is often read, appended to and stored again: p.list = append(p.list, x). Other instructions
// stored the elements of the old list, and these instructions are reported. So the instruction that
// stores the new list is not reported because of these elements.

// readFrom returns the reader from whose memory v, or the list that v appends to, was read; noReader if
// it was not only read from such memory.
func (u *unit) readFrom(v ssa.Value) int {
	var at places
	switch v := v.(type) {
	case *ssa.UnOp:
		at = u.value(v.X) // only an address has places
	case *ssa.Lookup:
		at = u.value(v.X)
	case *ssa.Call:
		if isAppend(v) {
			return u.readFrom(v.Call.Args[0])
		}
	}
	reader := noReader
	for p := range at {
		if !p.object.external || u.resets[p] != nil || reader != noReader && reader != p.object.reader() {
			return noReader
		}
		reader = p.object.reader()
	}
	return reader
}

// unread are the possible values of v without the local memory that was read from the reader's memory.
func (u *unit) unread(v ssa.Value) places {
	var found places
	if call, ok := v.(*ssa.Call); ok && isAppend(call) {
		found.add(u.unread(call.Call.Args[0]))
		found.put(place{object: u.at(call, 0)})
		return found
	}
	for p := range u.value(v) {
		if p.object.external || p.object.global != "" {
			found.put(p)
		}
	}
	return found
}

// recordRead records which parts of a list that append makes were read from a reader's memory.
func (u *unit) recordRead(list *object, old ssa.Value) {
	reader := u.readFrom(old)
	if !u.linking || reader == noReader {
		return
	}
	unread := u.unread(old)
	for v := range u.value(old) {
		_, alone := unread[v]
		u.recordLink(link{place{list, wholes}, v}, alone, reader)
	}
}

func isAppend(call *ssa.Call) bool {
	b, ok := call.Call.Value.(*ssa.Builtin)
	return ok && b.Name() == "append"
}
