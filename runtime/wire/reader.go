package wire

import "google.golang.org/protobuf/encoding/protowire"

// Reader reads the fields of one message. After the first error it has none left,
// and End tells the error.
type Reader struct {
	Tag   uint64 // of the field at hand: its number and how its value is written
	b     []byte // never changed: storing a pointer costs more while memory is collected
	at    int    // what comes next; the end after an error
	start int    // of the last Message, or of what failed
	err   error
}

// Read begins to read a message.
func Read(b []byte) Reader { return Reader{b: b} }

// Next goes on to the next field, whose value is to be read then. It reports
// whether there is one.
func (r *Reader) Next() bool {
	if r.at >= len(r.b) {
		return false
	}
	if c := r.b[r.at]; c < 0x80 {
		r.Tag = uint64(c)
		r.at++
		return true
	}
	return r.next()
}

func (r *Reader) next() bool {
	r.Tag = r.longVarint()
	return r.err == nil
}

// Skip passes over the value of a field that the message does not have.
func (r *Reader) Skip() {
	number := r.Tag >> 3
	if number < uint64(protowire.MinValidNumber) || number > uint64(protowire.MaxValidNumber) {
		r.fail(ErrMalformed)
		return
	}
	n := protowire.ConsumeFieldValue(protowire.Number(number), protowire.Type(r.Tag&7), r.b[r.at:])
	if n < 0 {
		r.fail(reason(n))
		return
	}
	r.at += n
}

// Message takes a value that has a length before it. It belongs to the input.
func (r *Reader) Message() []byte {
	n := r.varint()
	if n > uint64(len(r.b)-r.at) {
		r.fail(ErrTruncated)
		return nil
	}
	r.start = r.at
	r.at += int(n)
	return r.b[r.start:r.at:r.at]
}

// Within takes over the error of reading the last Message.
func (r *Reader) Within(err error) {
	if err != nil && r.err == nil {
		r.err, r.at = err, len(r.b)
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
		r.err, r.start = err, r.at
	}
	r.at = len(r.b)
}

func (r *Reader) varint() uint64 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint64(r.b[r.at-1])
	}
	return r.longVarint()
}

func (r *Reader) longVarint() uint64 {
	v, n := protowire.ConsumeVarint(r.b[r.at:])
	if n < 0 {
		r.fail(reason(n))
		return 0
	}
	r.at += n
	return v
}

// run counts the fields with the same tag and a length that follow the one at
// hand without a gap, so that a list is made in one go. It looks at what is there
// alone: a length that leads beyond the end is not counted.
func (r *Reader) run() int {
	count := 0
	ahead := Reader{b: r.b, at: r.at}
	for ahead.Next() && ahead.Tag == r.Tag {
		if ahead.Message(); ahead.err != nil {
			break
		}
		count++
	}
	return count
}
