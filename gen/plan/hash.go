package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"reflect"
)

// Hash is the SHA-256 of the plan's canonical encoding: every field that is not zero, with
// its name, in order of declaration. It is the same on all systems. A field that a later
// release adds changes only the hashes of plans that use it.
func Hash(p *Plan) [32]byte {
	h := sha256.New()
	encode(h, reflect.ValueOf(p).Elem())
	return [32]byte(h.Sum(nil))
}

// HashOf is the same hash for another plain value, shortened, as text.
func HashOf(v any) string {
	h := sha256.New()
	encode(h, reflect.ValueOf(v))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func encode(h hash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		number(h, 's', 0)
		for i := range v.NumField() {
			fields(h, v.Field(i), v.Type().Field(i))
		}
		number(h, 'e', 0)
	case reflect.Slice:
		number(h, 'l', uint64(v.Len()))
		for i := range v.Len() {
			encode(h, v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			number(h, 'n', 0)
			return
		}
		number(h, 'p', 0)
		encode(h, v.Elem())
	case reflect.String:
		text(h, 't', v.String())
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		number(h, 'b', n)
	case reflect.Float64:
		number(h, 'd', math.Float64bits(v.Float()))
	case reflect.Int, reflect.Int64:
		number(h, 'i', uint64(v.Int()))
	default:
		panic(fmt.Sprintf("plan: %s has no canonical encoding", v.Type()))
	}
}

// fields encodes a field. It encodes the fields of Calls and Selector as if they were fields
// of the outer struct, because they were in earlier releases and the hash must not change.
func fields(h hash.Hash, f reflect.Value, declared reflect.StructField) {
	switch {
	case f.IsZero():
	case f.Type() == reflect.TypeFor[Calls](), f.Type() == reflect.TypeFor[Selector]():
		for i := range f.NumField() {
			fields(h, f.Field(i), f.Type().Field(i))
		}
	default:
		text(h, 'f', declared.Name)
		encode(h, f)
	}
}

func number(h hash.Hash, tag byte, n uint64) {
	var b [9]byte
	b[0] = tag
	binary.BigEndian.PutUint64(b[1:], n)
	h.Write(b[:])
}

func text(h hash.Hash, tag byte, s string) {
	number(h, tag, uint64(len(s)))
	h.Write([]byte(s))
}
