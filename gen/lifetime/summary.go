package lifetime

import (
	"go/token"
	"go/types"
)

// summary says what a unit does with its parameters, for callers.
type summary struct {
	escapes []escape
	stores  []transfer
	results []map[origin]bool
	joins   bool              // the unit waits for goroutines
	escaped map[escape]bool   // keys of known escapes, without positions and the like
	stored  map[transfer]bool // keys of known transfers
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

// isNew reports whether an escape or transfer is new and the summary has room for it.
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

// escape says that a parameter reaches a place that outlives every call.
type escape struct {
	from origin
	sink sink
	pos  token.Pos // position in the unit
	via  origin    // the sender that sends it
	sent bool      // via is set; only the handler knows whether it is a sender
}

// transfer says that a parameter is stored in the memory behind another parameter.
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
	callDepthMax    = 100    // calls in calls; each needs stack space of our own
	instructionsMax = 50_000 // for a unit: about 10,000 lines
	recursionsMax   = 4      // analyses of a recursive function
	roundsMax       = 50     // for a unit; each follows a value through one more store
	eventsMax       = 1_000  // escapes and transfers of a summary
)
