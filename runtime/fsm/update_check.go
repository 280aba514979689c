package fsm

import (
	"fmt"
	"math"
	"strings"
)

// Allowed restricts the updates of a program that is newer than the log's description:
// an update may use only what this description has. It is immutable.
type Allowed struct {
	Behind []uint64 // nodes with an older program, which does not know the newer description

	log, own *description
}

// newAllowed returns nil if updates need no check.
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
		return nil // the fields of an update are unknown
	}
	return &Allowed{Behind: t.behind(own), log: a, own: b}
}

// Check returns an error if an encoded update uses a field that the log's description
// does not have. The error names the field and matches [ErrNotYet].
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

	nilElement = 1<<29 - 1 // the field that encodes nil in a list of pointers, see docs/reference/wire.md
)

// walk reads an encoded update. It stops at the first value that the log's description
// does not allow. It does not report damaged input.
type walk struct {
	a   *Allowed
	err error
}

// scanFields calls f for each field of a message.
func scanFields(b []byte, f func(number int, form byte, value uint64, bytes []byte)) {
	for in := newReader(b); len(in.B) > 0 && in.Err == nil; {
		tag := in.Uint()
		var value uint64
		var bytes []byte
		switch tag & 7 {
		case formVarint:
			value = in.Uint()
		case formFixed64:
			in.Take(8)
		case formFixed32:
			in.Take(4)
		case formBytes:
			bytes = in.Take(in.Uint())
		default:
			return
		}
		if in.Err == nil {
			f(int(tag>>3), byte(tag&7), value, bytes)
		}
	}
}

// message reads a message, which has the type log in the log's description and the type
// own in the program's.
func (w *walk) message(b []byte, log, own string) {
	scanFields(b, func(number int, form byte, value uint64, bytes []byte) {
		if w.err != nil || number == nilElement {
			return
		}
		x, ok := w.a.log.messages[log][number]
		y := w.a.own.messages[own][number]
		where := fmt.Sprintf("field %d of %s, %s,", number, own, y.name)
		if !ok {
			w.err = fmt.Errorf("%w: some nodes do not know %s: it must be zero until all nodes run the newer program", ErrNotYet, where)
			return
		}
		then, now := strings.Fields(x.form), strings.Fields(y.form)
		if len(then) != len(now) || len(then) == 0 {
			return
		}
		if then[0] == "map" && len(then) == 3 {
			scanFields(bytes, func(number int, form byte, value uint64, bytes []byte) {
				if number == 1 || number == 2 {
					w.element(form, value, bytes, where, then[number], now[number])
				}
			})
			return
		}
		w.element(form, value, bytes, where, then[len(then)-1], now[len(now)-1])
	})
}

// form reads the root of an update.
func (w *walk) form(b []byte, where, log, own string) { w.element(formBytes, 0, b, where, log, own) }

// element reads one element, or a packed list of numbers.
func (w *walk) element(form byte, value uint64, bytes []byte, where, log, own string) {
	switch {
	case w.err != nil:
	case strings.HasPrefix(log, ".") && strings.HasPrefix(own, "."):
		w.message(bytes, log[1:], own[1:])
	case log == own:
	case form == formVarint:
		w.number(value, where, log)
	case form == formBytes:
		for in := newReader(bytes); len(in.B) > 0 && in.Err == nil; {
			w.number(in.Uint(), where, log)
		}
	}
}

// number checks that a number fits the narrower type of the log's description.
func (w *walk) number(v uint64, where, log string) {
	signed := int64(v>>1) ^ -int64(v&1)
	switch {
	case log == "int32" && (signed > math.MaxInt32 || signed < math.MinInt32), log == "uint32" && v > math.MaxUint32:
		w.err = fmt.Errorf("%w: some nodes have %s as %s: the value must fit this type until all nodes run the newer program", ErrNotYet, where, log)
	}
}
