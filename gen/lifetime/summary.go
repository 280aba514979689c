package lifetime

import (
	"go/token"
	"go/types"
)

// summary is what a unit does with its parameters, for callers.
type summary struct {
	escapes []escape
	stores  []transfer
	results []map[origin]bool
	joins   bool              // it waits for goroutines
	escaped map[escape]bool   // escapes, without what does not tell them apart
	stored  map[transfer]bool // stores, in the same way
}

func (s *summary) addEscape(e escape) {
	key := e
	key.sink = sink{kind: e.sink.kind}
	if isNew(s, &s.escaped, key) {
		s.escapes = append(s.escapes, e)
	}
}

func (s *summary) addStore(t transfer) {
	key := t
	key.sink = sink{}
	if isNew(s, &s.stored, key) {
		s.stores = append(s.stores, t)
	}
}

// isNew reports whether a summary has neither this escape or transfer yet nor too many.
func isNew[E comparable](s *summary, known *map[E]bool, key E) bool {
	if (*known)[key] || len(s.escapes)+len(s.stores) >= eventsMax {
		return false
	}
	if *known == nil {
		*known = make(map[E]bool)
	}
	(*known)[key] = true
	return true
}

// escape says that a parameter reaches something that outlives every call.
type escape struct {
	from origin
	sink sink
	pos  token.Pos // in the unit
	via  origin    // the sender that it is sent by
	sent bool      // via holds, and whether it is a sender is for the handler to say
}

// transfer says that a parameter is stored in what another one leads to.
type transfer struct {
	from  origin
	to    origin
	field *types.Var
	sink  sink
	pos   token.Pos
}

// These bound the work; workMax bounds the rest.
const (
	summariesMax    = 5_000  // functions
	callDepthMax    = 100    // of calls that are followed; each takes some of our own stack
	instructionsMax = 50_000 // of a unit: some 10,000 lines, which no person has written
	recursionsMax   = 4      // times that a recursive function is looked at
	roundsMax       = 50     // of a unit; each follows a value through one more store
	eventsMax       = 1_000  // of a summary
)
