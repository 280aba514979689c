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
	joins   bool // it waits for goroutines
	known   map[event]bool
}

// event is what tells escapes and transfers apart.
type event struct {
	from, to origin
	field    *types.Var
	kind     sinkKind
	escapes  bool
	pos      token.Pos
}

func (s *summary) addEscape(e escape) {
	if s.isNew(event{from: e.from, to: e.via, kind: e.sink.kind, escapes: true, pos: e.pos}) {
		s.escapes = append(s.escapes, e)
	}
}

func (s *summary) addStore(t transfer) {
	if s.isNew(event{from: t.from, to: t.to, field: t.field, pos: t.pos}) {
		s.stores = append(s.stores, t)
	}
}

func (s *summary) isNew(e event) bool {
	if s.known[e] || len(s.known) >= eventsMax {
		return false
	}
	if s.known == nil {
		s.known = make(map[event]bool)
	}
	s.known[e] = true
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
