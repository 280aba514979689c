package grpc

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields reads a message field by field, without copying. After an error next returns
// false.
type fields struct {
	rest   []byte
	number protowire.Number
	kind   protowire.Type
	err    error
}

func fieldsOf(b []byte) fields { return fields{rest: b} }

// next starts a field. One of the methods below must then read its value.
func (f *fields) next() bool {
	if f.err != nil || len(f.rest) == 0 {
		return false
	}
	number, kind, n := protowire.ConsumeTag(f.rest)
	f.number, f.kind = number, kind
	return f.advance(n)
}

func (f *fields) varint() uint64 {
	if !f.is(protowire.VarintType) {
		return 0
	}
	v, n := protowire.ConsumeVarint(f.rest)
	f.advance(n)
	return v
}

func (f *fields) fixed64() uint64 {
	if !f.is(protowire.Fixed64Type) {
		return 0
	}
	v, n := protowire.ConsumeFixed64(f.rest)
	f.advance(n)
	return v
}

func (f *fields) bytes() []byte {
	if !f.is(protowire.BytesType) {
		return nil
	}
	v, n := protowire.ConsumeBytes(f.rest)
	f.advance(n)
	return v[:len(v):len(v)] // so that append does not overwrite the next field
}

func (f *fields) text() string {
	s := string(f.bytes())
	if f.err == nil && !utf8.ValidString(s) {
		f.err = fmt.Errorf("field %d is not valid UTF-8", f.number)
	}
	return s
}

func (f *fields) skip() {
	f.advance(protowire.ConsumeFieldValue(f.number, f.kind, f.rest))
}

func (f *fields) is(kind protowire.Type) bool {
	if f.err == nil && f.kind != kind {
		f.err = fmt.Errorf("field %d has wire type %d, want %d", f.number, f.kind, kind)
	}
	return f.err == nil
}

// advance skips n bytes. n < 0 is an error of protowire.
func (f *fields) advance(n int) bool {
	if n < 0 {
		f.err = protowire.ParseError(n)
		return false
	}
	f.rest = f.rest[n:]
	return true
}
