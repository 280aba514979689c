package durable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// The ids of promises. An execution has the id that its caller gives, or the id of a record. The
// ids of its records begin with its own id and the mark, and no id that a caller
// gives contains the mark: see PromiseID. The SDKs do not accept a colon in the ids that a caller
// gives, and they add only numbers. So the mark is in none of their ids.
//
//	order-17        an execution with the id order-17
//	order-17:#2     its second record
//	order-17:#2.1   the first record of this record, which is an execution
//	order-17:##2    an execution with the id order-17:#2
//	order-17:2:#    an execution with the id order-17:2, if that is the id of an old record
const mark = ":#"

// tagID is the tag with the id that the caller gave, if the promise has another one.
const tagID = "topogen:id"

// idMax bounds the id of an execution in bytes. The ids of its records need the rest of the limit of
// the protocol: a separator, a position and two numbers of attempts have at most 31 bytes.
const idMax = protocol.MaxID - 48

// Errors of ids.
var (
	// ErrInvalidID: no execution can have the id.
	ErrInvalidID = errors.New("durable: the id is not valid")
	// ErrTaken: the promise with the id was not made for this call, but for another function or
	// group, or by a program that calls no function.
	ErrTaken = errors.New("durable: the id is taken")
)

// PromiseID is the id of the promise of a call whose Call.ID is id: the same text, with another #
// after each :#. Get takes ids of promises. Handle.ID differs from it only in a store with ids of
// records that were made by an earlier version or by an SDK.
func PromiseID(id string) string { return strings.ReplaceAll(id, mark, mark+"#") }

// promiseID is PromiseID for an id that is checked.
func promiseID(id string) (string, error) {
	made := PromiseID(id)
	switch {
	case len(made) > idMax:
		return "", fmt.Errorf("%w: the id %.40q… must have at most %d bytes, got %d; use a shorter one, such as a hash", ErrInvalidID, id, idMax, len(made))
	case !utf8.ValidString(id):
		return "", fmt.Errorf("%w: the id %.100q must be UTF-8 text; encode other bytes, for example in base64", ErrInvalidID, id)
	case strings.IndexByte(id, 0) >= 0:
		return "", fmt.Errorf("%w: the id %.100q must not contain U+0000", ErrInvalidID, id)
	}
	return made, nil
}

// recordPrefix is how the ids of the records of an execution begin.
func recordPrefix(id string) string {
	if marked(id) {
		return id + "."
	}
	return id + mark
}

// formerPrefix is how the ids of the records of an execution began before there was a mark. A
// store that was written then has them.
func formerPrefix(id string) string {
	if strings.Contains(id, ":") {
		return id + "."
	}
	return id + ":"
}

// marked reports whether an id has the mark: a colon and exactly one #.
func marked(id string) bool {
	for {
		_, rest, found := strings.Cut(id, mark)
		if !found || !strings.HasPrefix(rest, "#") {
			return found
		}
		id = rest
	}
}

// givenID is the id that the caller of a promise gave.
func givenID(p *protocol.Promise) string {
	if id, tagged := p.Tags[tagID]; tagged {
		return id
	}
	return p.ID
}

// named reports whether the caller of a promise gave its id. The other promises are records of
// an execution: in Go they name their step, and those of the SDKs have the id of their parent, a
// separator and a number.
func named(p *protocol.Promise) bool {
	if step := p.Tags[tagStep]; step != "" {
		return strings.HasPrefix(step, nameStart) && p.Tags[protocol.TagBranch] == p.ID
	}
	parent := p.Tags[protocol.TagParent]
	rest, below := strings.CutPrefix(p.ID, parent)
	if parent == "" || !below || len(rest) < 2 || rest[0] != ':' && rest[0] != '.' {
		return true
	}
	return strings.Trim(rest[1:], "0123456789") != ""
}

// isOf returns an error that matches ErrTaken if a promise with the id of a call was made by
// something else.
func isOf(p *protocol.Promise, call Call) error {
	if named(p) && givenID(p) == call.ID && calls(p, call) {
		return nil
	}
	return fmt.Errorf("%w: the promise %.200q was made by %s, not by a call of %q with the id %.200q; use another id", ErrTaken, p.ID, makerOf(p), call.Func, call.ID)
}

// claim returns the promise of a call with an id of its own. create makes a promise, or returns the
// promise that exists.
//
// An earlier version used any id as it was. So it may have made the promise of a call whose promise
// now has another id, and it may have a record with the id of the promise. An SDK may have such a
// record, too. The call then has a promise beside it, with the mark at its end.
func claim(call Call, op protocol.PromiseCreate, get func(id string) (*protocol.Promise, error), create func(protocol.PromiseCreate) (*protocol.Promise, error)) (*protocol.Promise, error) {
	if op.ID != call.ID {
		p, err := get(call.ID)
		if err == nil && isOf(p, call) == nil || err != nil && !errors.Is(err, ErrNotFound) {
			return p, err
		}
	}
	p, err := create(op)
	if err == nil && !named(p) {
		p, err = create(beside(op, call))
	}
	if err == nil {
		err = isOf(p, call)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// beside is the operation that creates the promise of a call whose id is that of a record.
func beside(op protocol.PromiseCreate, call Call) protocol.PromiseCreate {
	id := op.ID + mark
	op.Tags = maps.Clone(op.Tags)
	for _, tag := range []string{protocol.TagBranch, protocol.TagParent, protocol.TagOrigin} {
		if op.Tags[tag] == op.ID {
			op.Tags[tag] = id
		}
	}
	op.ID, op.Tags[tagID] = id, call.ID
	return op
}

// mayHave reports whether the promise of a call with an id may have another id.
func mayHave(id, promise string) bool {
	made := PromiseID(id)
	return promise == id || promise == made || promise == made+mark
}

// calls reports whether a promise calls the function of a call in the same group. The promise of
// an external call may be older than the call, because another program has settled it before: it
// then names no function.
func calls(p *protocol.Promise, call Call) bool {
	function := functionOf(p)
	if function == "" && call.External {
		return p.Tags[protocol.TagTarget] == ""
	}
	if function != call.Func {
		return false
	}
	group, polled := groupOf(call.Target)
	other, otherPolled := groupOf(p.Tags[protocol.TagTarget])
	return group == other || !polled || !otherPolled
}

// functionOf is the function that a promise calls, or "".
func functionOf(p *protocol.Promise) string {
	call, err := decodeParameter(p.Param)
	if err != nil {
		return ""
	}
	return call.Func
}

// groupOf is the group of an address at which processes poll. The address of a function may
// change between two calls, but two groups have functions of their own.
func groupOf(address string) (group string, polled bool) {
	for _, scheme := range []string{"poll://any@", "poll://uni@"} {
		if rest, ok := strings.CutPrefix(address, scheme); ok {
			group, _, _ = strings.Cut(rest, "/")
			return group, true
		}
	}
	return "", false
}

// makerOf says what has made a promise.
func makerOf(p *protocol.Promise) string {
	if !named(p) {
		return fmt.Sprintf("the execution %.200q, as its record of %q", p.Tags[protocol.TagParent], cmp.Or(p.Tags[tagStep], functionOf(p)))
	}
	function := functionOf(p)
	if function == "" {
		return "a program that calls no function"
	}
	text := fmt.Sprintf("a call of %q with the id %.200q", function, givenID(p))
	if target := p.Tags[protocol.TagTarget]; target != "" {
		text += " for " + target
	}
	return text
}
