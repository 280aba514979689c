package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A reader reads server-sent events. The lines that begin with "data:" form a
// message, and an empty line ends it.
type reader struct {
	r    *bufio.Reader
	max  int
	data []byte
	line []byte
}

const readerBytes = 16 << 10 // of the buffer of a reader

func newReader(r io.Reader, max int) *reader {
	return &reader{r: bufio.NewReaderSize(r, readerBytes), max: max}
}

// next returns the data of the next message. It is valid until the following call. A
// message that the end of the stream cuts off is not returned.
func (r *reader) next() ([]byte, error) {
	r.data = r.data[:0]
	some := false
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if some {
				return r.data, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		if string(field) != "data" {
			continue // a comment, or a field that the protocol does not use
		}
		if some {
			r.data = append(r.data, '\n')
		}
		some = true
		r.data = append(r.data, bytes.TrimPrefix(value, []byte(" "))...)
		if len(r.data) > r.max {
			return nil, r.tooLong()
		}
	}
}

// readLine reads a line without its end, which is LF or CR LF.
func (r *reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.r.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case len(r.line) > r.max+len("data: \r\n"):
			return nil, r.tooLong()
		case err == nil:
			return bytes.TrimSuffix(r.line[:len(r.line)-1], []byte("\r")), nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r *reader) tooLong() error {
	return fmt.Errorf("a message is longer than %d bytes", r.max)
}
