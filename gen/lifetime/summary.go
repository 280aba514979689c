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

// summarizing bounds the work.
const (
	summariesMax    = 5_000     // functions
	callDepthMax    = 100       // of calls that are followed; each takes some of our own stack
	instructionsMax = 50_000    // of a unit: some 10,000 lines, which no person has written
	visitsMax       = 5_000_000 // of instructions in all: some seconds
	recursionsMax   = 4         // times that a recursive function is looked at
	roundsMax       = 50        // of a unit; each follows a value through one more store
	eventsMax       = 2_000     // of a summary, for each sort
)
