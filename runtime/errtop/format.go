package errtop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of exceptiontop.proto.
const (
	fieldCount    protowire.Number = 1
	fieldLastTime protowire.Number = 2
	fieldKey      protowire.Number = 1 // of a map entry
	fieldValue    protowire.Number = 2
)

// Limits of a file, which follow from those of a keeper. A reader uses no more memory
// than the records of the file.
const (
	recordsMax = topMax
	fieldMax   = textMax + 32          // bytes of an entry: a text, a number, tags and lengths
	fileMax    = topMax * 2 * fieldMax // bytes: each text is in both maps
	windowSize = 64 << 10              // bytes that are read at a time: several of the largest fields
)

// encode returns the content of a file with these entries.
func encode(entries []Entry) []byte {
	var b, entry []byte
	for _, e := range entries {
		entry = protowire.AppendTag(entry[:0], fieldKey, protowire.BytesType)
		entry = protowire.AppendString(entry, e.Text)
		entry = protowire.AppendTag(entry, fieldValue, protowire.VarintType)
		common := len(entry)
		entry = protowire.AppendVarint(entry, e.Count)
		b = protowire.AppendTag(b, fieldCount, protowire.BytesType)
		b = protowire.AppendBytes(b, entry)
		entry = protowire.AppendVarint(entry[:common], uint64(e.Last.UnixMicro()))
		b = protowire.AppendTag(b, fieldLastTime, protowire.BytesType)
		b = protowire.AppendBytes(b, entry)
	}
	return b
}

// decode reads a file that encode wrote, or that another implementation of protobuf wrote
// for the same message: in any order and with unknown fields, within the limits above.
// The entries are sorted like those of a keeper.
func decode(from io.Reader) ([]Entry, error) {
	d := decoder{records: make(map[string]*record)}
	window := bufio.NewReaderSize(from, windowSize)
	for at := 0; ; {
		b, err := window.Peek(fieldMax)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if len(b) == 0 {
			break
		}
		n, err := d.field(b, at)
		if err != nil {
			return nil, err
		}
		if at += n; at > fileMax { // the file grows, or does not report its size
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, fileMax)
		}
		_, _ = window.Discard(n) // these bytes are in the buffer
	}
	list := make([]Entry, 0, len(d.records))
	for text, r := range d.records {
		e := Entry{Text: text, Count: r.count}
		if r.last != 0 {
			e.Last = time.UnixMicro(r.last)
		}
		list = append(list, e)
	}
	sortEntries(list)
	return list, nil
}

type decoder struct {
	records map[string]*record
}

// record is the content of the two maps for one text.
type record struct {
	count uint64
	last  int64 // microseconds since 1970; 0 if the file has no time
}

// field reads one field of the message, which begins at byte at.
func (d *decoder) field(b []byte, at int) (n int, err error) {
	f, err := next(b, at)
	if errors.Is(err, io.ErrUnexpectedEOF) && len(b) == fieldMax {
		err = broken(at, fmt.Sprintf("a field of more than %d bytes", fieldMax))
	}
	if err != nil {
		return 0, err
	}
	if f.kind != protowire.BytesType || f.number != fieldCount && f.number != fieldLastTime {
		return f.length, nil
	}
	entry, _ := protowire.ConsumeBytes(b[f.tag:])
	text, value, err := mapEntry(entry, at+f.length-len(entry))
	if err != nil {
		return 0, err
	}
	r := d.records[string(text)]
	if r == nil {
		if len(d.records) == recordsMax {
			return 0, broken(at, fmt.Sprintf("there are more than %d records", recordsMax))
		}
		r = new(record)
		d.records[string(text)] = r
	}
	if f.number == fieldCount { // the last of several counts applies
		r.count = value
	} else {
		r.last = int64(value)
	}
	return f.length, nil
}

// mapEntry reads a map entry, which begins at byte at.
func mapEntry(b []byte, at int) (text []byte, value uint64, err error) {
	for len(b) > 0 {
		f, err := next(b, at)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case f.number == fieldKey && f.kind == protowire.BytesType:
			text, _ = protowire.ConsumeBytes(b[f.tag:])
			if len(text) > textMax {
				return nil, 0, broken(at+f.tag, fmt.Sprintf("a text of more than %d bytes", textMax))
			}
			if !utf8.Valid(text) {
				return nil, 0, broken(at+f.tag, "a text that is not UTF-8")
			}
		case f.number == fieldValue && f.kind == protowire.VarintType:
			value, _ = protowire.ConsumeVarint(b[f.tag:])
		}
		b, at = b[f.length:], at+f.length
	}
	return text, value, nil
}

// field describes one field of a message.
type field struct {
	number      protowire.Number
	kind        protowire.Type
	tag, length int // bytes of the tag, and of the whole field
}

// next returns the field at the beginning of b, which is byte at of the file.
func next(b []byte, at int) (field, error) {
	number, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return field{}, brokenFor(at, tag)
	}
	if number > protowire.MaxValidNumber {
		return field{}, broken(at, "invalid field number")
	}
	n := protowire.ConsumeFieldValue(number, kind, b[tag:])
	if n < 0 {
		return field{}, brokenFor(at+tag, n)
	}
	return field{number, kind, tag, tag + n}, nil
}

// brokenFor returns the error for a code of protowire, without the name of the library:
// the library follows its name by varying kinds of space.
func brokenFor(at, code int) error {
	err := protowire.ParseError(code)
	if err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: byte %d: %w", ErrFormat, at, err)
	}
	return broken(at, strings.TrimSpace(strings.TrimPrefix(err.Error(), "proto:")))
}

func broken(at int, reason string) error {
	return fmt.Errorf("%w: byte %d: %s", ErrFormat, at, reason)
}

// A file fits into memory on every platform of Go.
var _ [math.MaxInt32 - fileMax]struct{}
