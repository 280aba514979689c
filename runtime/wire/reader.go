package wire

import "google.golang.org/protobuf/encoding/protowire"

// Reader reads the fields of one message. After the first error it has none left,
// and End tells the error.
type Reader struct {
	Tag   uint64 // of the field at hand: its number and how its value is written
	rest  []byte
	size  int // of the whole input
	start int // of the last Message, or of what failed
	err   error
}

// Read begins to read a message.
func Read(b []byte) Reader { return Reader{rest: b, size: len(b)} }

// Next goes on to the next field, whose value is to be read then. It reports
// whether there is one.
func (r *Reader) Next() bool {
	if len(r.rest) == 0 {
		return false
	}
	if c := r.rest[0]; c < 0x80 {
		r.Tag, r.rest = uint64(c), r.rest[1:]
		return true
	}
	return r.next()
}

func (r *Reader) next() bool {
	tag, n := protowire.ConsumeVarint(r.rest)
	if n < 0 {
		r.Tag = 0
		r.fail(reason(n))
		return false
	}
	r.Tag, r.rest = tag, r.rest[n:]
	return true
}

// Skip passes over the value of a field that the message does not have.
func (r *Reader) Skip() {
	number := r.Tag >> 3
	if number < uint64(protowire.MinValidNumber) || number > uint64(protowire.MaxValidNumber) {
		r.fail(ErrMalformed)
		return
	}
	n := protowire.ConsumeFieldValue(protowire.Number(number), protowire.Type(r.Tag&7), r.rest)
	if n < 0 {
		r.fail(reason(n))
		return
	}
	r.rest = r.rest[n:]
}

// Message takes a value that has a length before it. It belongs to the input.
func (r *Reader) Message() []byte {
	n := r.varint()
	if n > uint64(len(r.rest)) {
		r.fail(ErrTruncated)
		return nil
	}
	r.start = r.size - len(r.rest)
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Within takes over the error of reading the last Message.
func (r *Reader) Within(err error) {
	if err != nil && r.err == nil {
		r.err, r.rest = err, nil
	}
}

// End is the error of reading the message, if any. fields names the message's
// fields, each behind its number.
func (r *Reader) End(message, fields string) error {
	if r.err == nil {
		return nil
	}
	return r.failure(message, fields)
}

func (r *Reader) failure(message, fields string) error {
	field := ""
	if fields != "" {
		field = fieldName(fields, r.Tag>>3)
	}
	return place(message, field, r.start, r.err)
}

// fail ends the reading; the first reason counts.
func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err, r.start = err, r.size-len(r.rest)
	}
	r.rest = nil
}

func (r *Reader) varint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return v
	}
	return r.longVarint()
}

func (r *Reader) longVarint() uint64 {
	v, n := protowire.ConsumeVarint(r.rest)
	if n < 0 {
		r.fail(reason(n))
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// run counts the fields with the same tag and a length that follow the one at
// hand without a gap, so that a list is made in one go. It looks at what is there
// alone: a length that leads beyond the end is not counted.
func (r *Reader) run() int {
	count := 0
	for rest := r.rest; ; count++ {
		tag, n := protowire.ConsumeVarint(rest)
		if n < 0 || tag != r.Tag {
			return count
		}
		rest = rest[n:]
		if n = protowire.ConsumeFieldValue(1, protowire.BytesType, rest); n < 0 {
			return count
		}
		rest = rest[n:]
	}
}
