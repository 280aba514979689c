package piper

import (
	"reflect"
	"strings"
)

// keeper is what a recorder has in the place of an instance: it keeps m in fields.
type keeper func(m any, fields string)

// Recording returns sender, which keeps what it is given in recorder: a pointer to a struct
// with a slice for each field that sends name. It replaces a running topology in the test
// of a handler. P is a pointer to a sender.
func Recording[P any](recorder any, sender P) P {
	to := reflect.ValueOf(recorder).Elem()
	out := field(reflect.ValueOf(sender).Elem(), "out")
	if out.Kind() == reflect.Pointer && out.IsNil() { // a new instance would get another Out
		out.Set(reflect.New(out.Type().Elem()))
	}
	outOf(out).unit = &Unit{cell: cell{keeper(func(m any, fields string) {
		for name := range strings.FieldsSeq(fields) {
			list := to.FieldByName(name)
			v := reflect.ValueOf(m)
			if !v.IsValid() { // a message of an interface type that is nil
				v = reflect.Zero(list.Type().Elem())
			}
			list.Set(reflect.Append(list, v))
		}
	})}}
	return sender
}
