package fields_test

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/topogen/topogen/runtime/internal/fields"
)

var errDamaged = errors.New("damaged")

func TestFields(t *testing.T) {
	var b []byte
	b = append(b, 7)
	for _, v := range []uint64{0, 127, 128, math.MaxUint64} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.AppendVarint(b, math.MinInt64)
	b = binary.AppendUvarint(b, 1000)
	b = binary.AppendUvarint(b, math.MaxUint32)
	b = binary.LittleEndian.AppendUint64(b, 1<<60)
	b = binary.LittleEndian.AppendUint32(b, 1<<30)
	b = fields.AppendText(b, "name")
	b = append(fields.AppendText(b, []byte{1, 2}), 2, 9, 9)
	r := fields.Reader{B: b, Damaged: errDamaged}
	if v := r.Byte(); v != 7 {
		t.Errorf("Byte returns %d", v)
	}
	for _, want := range []uint64{0, 127, 128, math.MaxUint64} {
		if v := r.Uint(); v != want {
			t.Errorf("Uint returns %d, want %d", v, want)
		}
	}
	if v := r.Int(); v != math.MinInt64 {
		t.Errorf("Int returns %d", v)
	}
	if v := r.Number(1000); v != 1000 {
		t.Errorf("Number returns %d", v)
	}
	if v := r.Uint32(); v != math.MaxUint32 {
		t.Errorf("Uint32 returns %d", v)
	}
	if a, b := r.Fixed64(), r.Fixed32(); a != 1<<60 || b != 1<<30 {
		t.Errorf("Fixed64 and Fixed32 return %d and %d", a, b)
	}
	if v := r.Text(4); v != "name" {
		t.Errorf("Text returns %q", v)
	}
	if v := r.Bytes(2); len(v) != 2 || cap(v) != 2 {
		t.Errorf("Bytes returns %v with room for %d", v, cap(v))
	}
	if n := r.Count(10); n != 2 {
		t.Errorf("Count returns %d", n)
	}
	if r.Take(2); r.End() != nil {
		t.Error(r.Err)
	}
}

// TestDamaged reads fields that must be refused. Nothing is read after an error.
func TestDamaged(t *testing.T) {
	for name, read := range map[string]func(r *fields.Reader){
		"\x80":     func(r *fields.Reader) { r.Uint() },
		"\x80\x00": func(r *fields.Reader) { r.Uint() },
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02": func(r *fields.Reader) { r.Uint() },
		"\x05":                 func(r *fields.Reader) { r.Number(4) },
		"\x80\x80\x80\x80\x10": func(r *fields.Reader) { r.Uint32() },
		"\x02\x00":             func(r *fields.Reader) { r.Count(5) },
		"\x02\x00\x00":         func(r *fields.Reader) { r.Count(1) },
		"1234567":              func(r *fields.Reader) { r.Fixed64() },
		"123":                  func(r *fields.Reader) { r.Fixed32() },
		"\x03ab":               func(r *fields.Reader) { r.Bytes(3) },
		"\x03abc":              func(r *fields.Reader) { r.Text(2) },
		"":                     func(r *fields.Reader) { r.Byte() },
		"a":                    func(r *fields.Reader) {},
	} {
		r := fields.Reader{B: []byte(name), Damaged: errDamaged}
		read(&r)
		if err := r.End(); !errors.Is(err, errDamaged) {
			t.Errorf("%q: %v", name, err)
		}
		if r.Byte() != 0 || r.Uint() != 0 || r.Take(1) != nil || len(r.B) > 0 {
			t.Errorf("%q: something was read after the error", name)
		}
	}
}
