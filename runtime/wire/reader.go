package wire

import "google.golang.org/protobuf/encoding/protowire"

// Reader reads the fields of one message. After the first error there are no more
// fields, and End returns the error.
type Reader struct {
	Tag   uint64 // of the current field: its number and wire type
	b     []byte // never changed, because storing a pointer costs more during garbage collection
	at    int    // position of the next byte; the end after an error
	start int    // position of the last Message, or of the failed value
	err   error
}

// Read returns a Reader for an encoded message.
func Read(b []byte) Reader { return Reader{b: b} }

// Next advances to the next field, whose value must be read next. It returns false if
// there is no field.
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

// Skip skips the value of an unknown field.
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

// Message reads a value with a length. The result is part of the input.
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

// Within sets the error of reading the last Message.
func (r *Reader) Within(err error) {
	if err != nil && r.err == nil {
		r.err, r.at = err, len(r.b)
	}
}

// End returns the error of reading the message, if any. fields lists the message's
// fields as numbers and names.
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

// fail stops reading. The first error is kept.
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

// run counts the fields with the same tag and a length that follow the current one
// without a gap, so that a list is allocated once. It does not count a field whose
// length exceeds the input.
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
