package member

import (
	"encoding/binary"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// decodeMessage parses a message of another node. It accepts only what appendMessage
// produces, within the limits, and copies what it keeps.
func decodeMessage(b []byte) (m message, err error) {
	if len(b) > messageMax {
		return m, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrMalformed, len(b), messageMax)
	}
	d := decoder{fields.Reader{B: b, Damaged: ErrMalformed}}
	if v := d.Byte(); d.Err == nil && v != wireVersion {
		return m, fmt.Errorf("%w: its version is %d, this node has version %d", ErrMalformed, v, wireVersion)
	}
	m.kind = kind(d.Byte())
	flags := d.Byte()
	if d.Err == nil && (m.kind == 0 || m.kind >= kindsEnd) {
		d.Fail("its kind %d is unknown", m.kind)
	}
	if flags&^flagsKnown != 0 {
		d.Fail("its flags %#x are unknown", flags)
	}
	m.cutOff, m.want = flags&flagCutOff != 0, flags&flagWant != 0
	m.boot = d.number("boot id", countMax)
	if m.boot == 0 {
		d.Fail("its sender has no boot id")
	}
	m.digest = d.uint64()
	d.kindFields(&m)
	d.records(&m)
	return m, d.End()
}

// decoder reads the fields of a message.
type decoder struct{ fields.Reader }

func (d *decoder) kindFields(m *message) {
	switch m.kind {
	case kindPing:
		m.sequence = d.number("sequence", 0)
		d.known(m)
	case kindAck:
		m.sequence = d.number("sequence", 0)
		m.echo = d.number("boot id", countMax)
		d.known(m)
	case kindNack:
		m.sequence = d.number("sequence", 0)
		m.echo = d.number("boot id", countMax)
	case kindPingRequest:
		m.sequence = d.number("sequence", 0)
		m.target = d.name()
		m.within = d.duration("time for the answer", time.Millisecond, withinMax)
	case kindLeave:
		m.sequence = d.number("sequence", 0)
	}
}

func (d *decoder) known(m *message) {
	m.knownBoot = d.number("boot id", countMax)
	m.knownIncarnation = d.number("incarnation", countMax)
	m.knownStatus = d.status()
}

func (d *decoder) records(m *message) {
	// The shortest record has 7 bytes, so a short message cannot claim many records.
	const shortest = 7
	n := d.number("number of records", recordsMax)
	if d.Err != nil {
		return
	}
	if n*shortest > uint64(len(d.B)) {
		d.Fail("it claims %d records in %d bytes", n, len(d.B))
		return
	}
	m.records = make([]record, n)
	for i := range m.records {
		d.record(&m.records[i])
	}
	if d.Err != nil {
		m.records = nil
	}
}

func (d *decoder) record(r *record) {
	r.status = d.status()
	r.name = d.name()
	r.address = string(d.text("address", AddressMax))
	if meta := d.text("meta data", MetaMax); len(meta) > 0 {
		r.meta = append([]byte(nil), meta...)
	}
	r.boot = d.number("boot id", countMax)
	if d.Err == nil && r.boot == 0 {
		d.Fail("a record has no boot id")
	}
	r.incarnation = d.number("incarnation", countMax)
	switch {
	case r.status == statusSuspect:
		d.accusers(r)
	case r.status >= statusDead:
		r.age = d.duration("age", time.Second, ageMax)
	}
}

func (d *decoder) accusers(r *record) {
	n := int(d.Byte())
	if n > accusersMax {
		d.Fail("a record has %d accusers, at most %d are allowed", n, accusersMax)
		return
	}
	if n == 0 { // the time of a suspicion depends on the number of confirmations, which is one less
		d.Fail("a suspicion has no accuser")
		return
	}
	for range n {
		a := d.uint32()
		if d.Err != nil {
			return
		}
		if len(r.accusers) > 0 && r.accusers[len(r.accusers)-1] >= a {
			d.Fail("the accusers of a record are not sorted")
			return
		}
		r.accusers = append(r.accusers, a)
	}
}

func (d *decoder) status() status {
	s := d.Byte()
	if s >= statuses {
		d.Fail("status %d is unknown", s)
		return 0
	}
	return status(s)
}

func (d *decoder) name() string {
	name := d.text("name", NameMax)
	if d.Err == nil && len(name) == 0 {
		d.Fail("a name is empty")
	}
	return string(name)
}

func (d *decoder) text(what string, limit int) []byte {
	text := d.Bytes(limit)
	if what != "meta data" && !utf8.Valid(text) {
		d.Fail("the %s is not UTF-8", what)
	}
	return text
}

// number reads a number of at most limit; 0 means any.
func (d *decoder) number(what string, limit uint64) uint64 {
	v := d.Uint()
	if limit > 0 && v > limit {
		d.Fail("the %s is %d, at most %d is allowed", what, v, limit)
		return 0
	}
	return v
}

func (d *decoder) duration(what string, unit, limit time.Duration) time.Duration {
	return time.Duration(d.number(what, uint64(limit/unit))) * unit
}

func (d *decoder) uint32() uint32 {
	if b := d.Take(4); len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.Take(8); len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}
