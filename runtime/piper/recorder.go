package piper

import (
	"reflect"
	"strings"
)

// keeper is what a recorder has in the place of an instance: it keeps m in fields.
type keeper func(m any, fields string)

// RecordTo makes o the sender of a recorder, a pointer to a struct with a slice for each
// field that sends name. It replaces a running topology in the test of a handler.
func (o *Out) RecordTo(recorder any) {
	to := reflect.ValueOf(recorder).Elem()
	o.unit = &Unit{cell: cell{keeper(func(m any, fields string) {
		for name := range strings.FieldsSeq(fields) {
			list := to.FieldByName(name)
			v := reflect.ValueOf(m)
			if !v.IsValid() { // a message of an interface type that is nil
				v = reflect.Zero(list.Type().Elem())
			}
			list.Set(reflect.Append(list, v))
		}
	})}}
}
