package piper

import (
	"reflect"
	"strings"
)

// keeper replaces the instance of a recorder's sender. It appends m to the fields.
type keeper func(m any, fields string)

// RecordTo makes o the sender of a recorder. recorder points to a struct with a slice
// for each field name that a send names. It replaces a running topology in the test of
// a handler.
func (o *Out) RecordTo(recorder any) {
	to := reflect.ValueOf(recorder).Elem()
	o.unit = &Unit{cell: cell{keeper(func(m any, fields string) {
		for name := range strings.FieldsSeq(fields) {
			list := to.FieldByName(name)
			v := reflect.ValueOf(m)
			if !v.IsValid() { // a nil message of an interface type
				v = reflect.Zero(list.Type().Elem())
			}
			list.Set(reflect.Append(list, v))
		}
	})}}
}
