package fsm

import (
	"fmt"
	"math"
	"strings"
)

// Allowed is what a program with a newer description may write into a log: what the
// log's own description has. It does not change.
type Allowed struct {
	Behind []uint64 // the nodes whose programs do not know all of the newer description

	log, own *description
}

// newAllowed is nil where all may be written.
func newAllowed(log, own string, t *announced) *Allowed {
	if log == "" || Compatible(own, log) == nil {
		return nil
	}
	a, err := parseDescription(log)
	if err != nil {
		return nil
	}
	b, err := parseDescription(own)
	if err != nil || a.roots["update"] == "" || b.roots["update"] == "" {
		return nil // it does not say what an update has
	}
	return &Allowed{Behind: t.behind(own), log: a, own: b}
}

// Check says which field of an update, as its codec writes it, the log does not have yet.
// The error matches [ErrNotYet].
func (a *Allowed) Check(update []byte) error {
	if a == nil {
		return nil
	}
	w := walk{a: a}
	w.form(update, "the update", a.log.roots["update"], a.own.roots["update"])
	return w.err
}

const (
	formVarint  = 0
	formFixed64 = 1
	formBytes   = 2
	formFixed32 = 5

	nilElement = 1<<29 - 1 // the field that stands for nil in a list of pointers, see docs/reference/wire.md
)

// walk goes through what a codec has written. It stops at what it does not know to be
// in the log's description; of what is damaged it says nothing.
type walk struct {
	a   *Allowed
	err error
}

// fields calls f for each field of a message.
func fields(b []byte, f func(number int, form byte, value uint64, bytes []byte)) {
	for in := (reader{b: b}); len(in.b) > 0 && in.err == nil; {
		tag := in.uint()
		var value uint64
		var bytes []byte
		switch tag & 7 {
		case formVarint:
			value = in.uint()
		case formFixed64:
			in.take(8)
		case formFixed32:
			in.take(4)
		case formBytes:
			bytes = in.bytes()
		default:
			return
		}
		if in.err == nil {
			f(int(tag>>3), byte(tag&7), value, bytes)
		}
	}
}

// message goes through a message that the log and the program call so.
func (w *walk) message(b []byte, log, own string) {
	fields(b, func(number int, form byte, value uint64, bytes []byte) {
		if w.err != nil || number == nilElement {
			return
		}
		x, ok := w.a.log.messages[log][number]
		y := w.a.own.messages[own][number]
		where := fmt.Sprintf("field %d of %s, %s,", number, own, y.name)
		if !ok {
			w.err = fmt.Errorf("%w: they do not know %s: it must be zero until all do", ErrNotYet, where)
			return
		}
		then, now := strings.Fields(x.form), strings.Fields(y.form)
		if len(then) != len(now) || len(then) == 0 {
			return
		}
		if then[0] == "map" && len(then) == 3 {
			fields(bytes, func(number int, form byte, value uint64, bytes []byte) {
				if number == 1 || number == 2 {
					w.element(form, value, bytes, where, then[number], now[number])
				}
			})
			return
		}
		w.element(form, value, bytes, where, then[len(then)-1], now[len(now)-1])
	})
}

// form goes through a root.
func (w *walk) form(b []byte, where, log, own string) { w.element(formBytes, 0, b, where, log, own) }

// element goes through an element, or a list of numbers in one piece.
func (w *walk) element(form byte, value uint64, bytes []byte, where, log, own string) {
	switch {
	case w.err != nil:
	case strings.HasPrefix(log, ".") && strings.HasPrefix(own, "."):
		w.message(bytes, log[1:], own[1:])
	case log == own:
	case form == formVarint:
		w.number(value, where, log)
	case form == formBytes:
		for in := (reader{b: bytes}); len(in.b) > 0 && in.err == nil; {
			w.number(in.uint(), where, log)
		}
	}
}

// number checks that a number that the program has room for has room in the others', too.
func (w *walk) number(v uint64, where, log string) {
	signed := int64(v>>1) ^ -int64(v&1)
	switch {
	case log == "int32" && (signed > math.MaxInt32 || signed < math.MinInt32), log == "uint32" && v > math.MaxUint32:
		w.err = fmt.Errorf("%w: they have %s as %s, and it must fit until all run the newer program", ErrNotYet, where, log)
	}
}
