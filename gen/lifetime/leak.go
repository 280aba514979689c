package lifetime

import (
	"fmt"
	"go/token"
	"path/filepath"
)

// Leak is a parameter or the receiver of a handler that reaches a place that outlives the call.
type Leak struct {
	Handler Handler
	Kind    Kind
	Param   string    // name of the parameter
	Index   int       // index into Handler.Params; -1: the receiver
	Pos     token.Pos // position in the handler
	sink    sink
	at      token.Position // position of the sink, if it is in a helper
}

// sinkKind is the kind of a place that outlives a call.
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

// sink is a place to which a value goes.
type sink struct {
	kind   sinkKind
	name   string // name of the field, the variable or the function
	owner  string // the type that has the field
	pos    token.Pos
	helper string // the function with the sink; "": the handler
	joined bool   // a goroutine for which the unit waits
}

// phrases say where a value goes. The name of a field or a variable is appended.
var phrases = [...]string{
	inField:     "is stored in field ",
	inMemory:    "is stored in memory that outlives the call",
	inGlobal:    "is stored in the package variable ",
	inChannel:   "is sent on a channel",
	inGoroutine: "is used in another goroutine",
	inResult:    "is returned",
	inMessage:   "is sent as a part of another message",
}

func (s sink) String() string {
	text := phrases[s.kind]
	if s.kind == inField || s.kind == inGlobal {
		text += s.name
	}
	if s.kind == inField && s.owner != "" {
		text += " of " + s.owner
	}
	return text
}

// Message is the finding: one sentence without a full stop.
func (l *Leak) Message() string {
	where := l.sink.String()
	if l.sink.helper != "" {
		where += fmt.Sprintf(" by %s (%s:%d)", l.sink.helper, filepath.Base(l.at.Filename), l.at.Line)
	}
	what, but := "message pointer", "it is valid only until "+l.Handler.Name+" returns"
	switch {
	case l.Kind == Context:
		what = "context"
	case l.Kind == Update:
		what = "update pointer"
	case l.Kind == Sender && l.sink.kind == inGoroutine:
		what, but = "sender", "it works only on the goroutine of "+l.Handler.Name
	case l.Kind == Sender:
		what, but = "sender", "it works only until "+l.Handler.Name+" returns"
	}
	return fmt.Sprintf("%s %s %s, but %s", what, l.Param, where, but)
}

// Suggestion says how to fix the leak.
func (l *Leak) Suggestion() string {
	switch l.Kind {
	case Sender:
		return "send in the handler itself, or use the sender of an external processor"
	case Context:
		if l.sink.kind == inGoroutine {
			return "let the handler wait for the goroutine, or use the context that Init gets"
		}
		return "pass the context as an argument, or keep the context that Init gets"
	case Update:
		return "copy the update: *" + l.Param
	default:
		return "copy the message: *" + l.Param
	}
}
