package lifetime

import (
	"fmt"
	"go/token"
	"path/filepath"
)

// Leak is a parameter of a handler that reaches something that outlives the call.
type Leak struct {
	Handler Handler
	Kind    Kind
	Param   string    // its name
	Index   int       // of Handler.Params
	Pos     token.Pos // in the handler
	sink    sink
	at      token.Position // of the sink, where a helper has it
}

// sinkKind is the sort of place that outlives a call.
type sinkKind int

const (
	inField sinkKind = iota
	inMemory
	inGlobal
	inChannel
	inGoroutine
	inResult
	inMessage
)

// sink is where a value goes.
type sink struct {
	kind   sinkKind
	name   string // of the field, the variable or the function
	owner  string // the type that has the field
	pos    token.Pos
	helper string // the function that has it; "": the handler
	joined bool   // a goroutine that is waited for
}

func (s sink) String() string {
	switch s.kind {
	case inField:
		if s.owner == "" {
			return "is stored in field " + s.name
		}
		return "is stored in field " + s.name + " of " + s.owner
	case inGlobal:
		return "is stored in the package variable " + s.name
	case inChannel:
		return "is sent on a channel"
	case inGoroutine:
		return "is used in another goroutine"
	case inResult:
		return "is returned"
	case inMessage:
		return "is sent as a part of another message"
	default:
		return "is stored in memory that outlives the call"
	}
}

// Message is the finding: one sentence without a full stop.
func (l *Leak) Message() string {
	where := l.sink.String()
	if l.sink.helper != "" {
		where += fmt.Sprintf(" by %s (%s:%d)", l.sink.helper, filepath.Base(l.at.Filename), l.at.Line)
	}
	switch l.Kind {
	case Sender:
		if l.sink.kind == inGoroutine {
			return fmt.Sprintf("sender %s %s, but it works only on the goroutine of %s", l.Param, where, l.Handler.Name)
		}
		return fmt.Sprintf("sender %s %s, but it works only until %s returns", l.Param, where, l.Handler.Name)
	case Context:
		return fmt.Sprintf("context %s %s, but it is valid only until %s returns", l.Param, where, l.Handler.Name)
	default:
		return fmt.Sprintf("message pointer %s %s, but it is valid only until %s returns", l.Param, where, l.Handler.Name)
	}
}

// Suggestion is what to do about it.
func (l *Leak) Suggestion() string {
	switch l.Kind {
	case Sender:
		return "send in the handler itself, or use the sender of an external processor"
	case Context:
		if l.sink.kind == inGoroutine {
			return "let the handler wait for the goroutine, or use the context that Init gets"
		}
		return "pass the context as an argument, or keep the context that Init gets"
	default:
		return "copy the message: *" + l.Param
	}
}
