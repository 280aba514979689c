package member

import (
	"encoding/binary"
	"fmt"
	"time"
	"unicode/utf8"
)

// decodeMessage parses a message of another node. It accepts only what appendMessage
// produces, within the limits, and copies what it keeps.
func decodeMessage(b []byte) (m message, err error) {
	if len(b) > messageMax {
		return m, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrMalformed, len(b), messageMax)
	}
	d := decoder{rest: b}
	if v := d.byte(); d.err == nil && v != wireVersion {
		return m, fmt.Errorf("%w: its version is %d, this node has version %d", ErrMalformed, v, wireVersion)
	}
	m.kind = kind(d.byte())
	flags := d.byte()
	if d.err == nil && (m.kind == 0 || m.kind >= kindsEnd) {
		d.fail("its kind %d is unknown", m.kind)
	}
	if flags&^flagsKnown != 0 {
		d.fail("its flags %#x are unknown", flags)
	}
	m.cutOff, m.want = flags&flagCutOff != 0, flags&flagWant != 0
	m.boot = d.number("boot id", countMax)
	if m.boot == 0 {
		d.fail("its sender has no boot id")
	}
	m.digest = d.uint64()
	d.kindFields(&m)
	d.records(&m)
	if d.err == nil && len(d.rest) > 0 {
		d.fail("it has %d bytes behind its end", len(d.rest))
	}
	return m, d.err
}

// decoder reads fields from the front of rest. After the first error it returns zeros.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
		d.rest = nil
	}
}

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
	if d.err != nil {
		return
	}
	if n*shortest > uint64(len(d.rest)) {
		d.fail("it claims %d records in %d bytes", n, len(d.rest))
		return
	}
	m.records = make([]record, n)
	for i := range m.records {
		d.record(&m.records[i])
	}
	if d.err != nil {
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
	if d.err == nil && r.boot == 0 {
		d.fail("a record has no boot id")
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
	n := int(d.byte())
	if n > accusersMax {
		d.fail("a record has %d accusers, at most %d are allowed", n, accusersMax)
		return
	}
	if n == 0 { // the time of a suspicion depends on the number of confirmations, which is one less
		d.fail("a suspicion has no accuser")
		return
	}
	for range n {
		a := d.uint32()
		if d.err != nil {
			return
		}
		if len(r.accusers) > 0 && r.accusers[len(r.accusers)-1] >= a {
			d.fail("the accusers of a record are not sorted")
			return
		}
		r.accusers = append(r.accusers, a)
	}
}

func (d *decoder) status() status {
	s := d.byte()
	if s >= statuses {
		d.fail("status %d is unknown", s)
		return 0
	}
	return status(s)
}

func (d *decoder) name() string {
	name := d.text("name", NameMax)
	if d.err == nil && len(name) == 0 {
		d.fail("a name is empty")
	}
	return string(name)
}

func (d *decoder) text(what string, limit int) []byte {
	n := d.number("length", uint64(limit))
	if d.err == nil && n > uint64(len(d.rest)) {
		d.fail("the %s ends behind the message", what)
	}
	text := d.take(int(n))
	if what != "meta data" && !utf8.Valid(text) {
		d.fail("the %s is not UTF-8", what)
	}
	return text
}

// number reads a number of at most limit; 0 means any.
func (d *decoder) number(what string, limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.rest)
	switch {
	case n <= 0:
		d.fail("the %s is incomplete or too long", what)
		return 0
	case n > 1 && d.rest[n-1] == 0:
		d.fail("the %s is not in its shortest form", what)
		return 0
	case limit > 0 && v > limit:
		d.fail("the %s is %d, at most %d is allowed", what, v, limit)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) duration(what string, unit, limit time.Duration) time.Duration {
	return time.Duration(d.number(what, uint64(limit/unit))) * unit
}

func (d *decoder) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); len(b) == 4 {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.fail("it is incomplete")
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}
