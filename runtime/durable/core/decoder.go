package core

import (
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/wire"
)

// decoder reads a record. The strings that it returns share the memory of the record, so
// a record is one allocation. After the first error all values are zero.
type decoder struct {
	rest string
	bad  string // the first error
}

func (d *decoder) fail(reason string) {
	if d.bad == "" {
		d.bad = reason
	}
	d.rest = ""
}

func (d *decoder) byte() byte {
	if d.rest == "" {
		d.fail("the record is too short")
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uint() uint64 {
	var v uint64
	for i := 0; i < len(d.rest) && i < 10; i++ {
		b := d.rest[i]
		if i == 9 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail("a number is cut off or too large")
	return 0
}

// number reads a number that is not negative: a time, a duration or a version.
func (d *decoder) number() int64 {
	v := d.uint()
	if int64(v) < 0 {
		d.fail("a number is too large")
		return 0
	}
	return int64(v)
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail("a text is cut off")
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// texts reads pairs of texts. It returns nil if there are none.
func (d *decoder) texts() map[string]string {
	n := d.uint()
	if n > uint64(len(d.rest))/2 { // each text takes at least a byte
		d.fail("a list is cut off")
		return nil
	}
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		key := d.text()
		m[key] = d.text()
	}
	return m
}

func (d *decoder) value() protocol.Value {
	v := protocol.Value{Headers: d.texts()}
	switch d.byte() {
	case 0:
	case 1:
		data := d.text()
		v.Data = &data
	default:
		d.fail("a value is neither present nor absent")
	}
	return v
}

// end returns why the record cannot be read, or "".
func (d *decoder) end() string {
	if d.bad == "" && d.rest != "" {
		d.bad = "the record is too long"
	}
	return d.bad
}

// appendTexts is the reverse of decoder.texts. The pairs are sorted, so that equal
// records have equal bytes on every replica.
func appendTexts(b []byte, m map[string]string) []byte {
	b = wire.AppendUint(b, uint64(len(m)))
	order := wire.Ordered(b, len(m))
	for k, v := range m {
		b = wire.AppendString(wire.AppendString(b, k), v)
		order.Add(b)
	}
	order.Sort(b)
	return b
}

func appendValue(b []byte, v protocol.Value) []byte {
	b = appendTexts(b, v.Headers)
	if v.Data == nil {
		return append(b, 0)
	}
	return wire.AppendString(append(b, 1), *v.Data)
}
