package wire

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// NoLimit is the limit of bounded codecs whose output is not limited.
const NoLimit = math.MaxInt

// pathMax limits the path of an Error in bytes. A list that contains itself would
// otherwise make it very long.
const pathMax = 200

// DepthMax is how deep a message may contain messages of its own type. A deeper message
// is either a pointer cycle or hostile input.
const DepthMax = 1000

// Reasons for an Error.
var (
	ErrTruncated = errors.New("the input ends too early")
	ErrMalformed = errors.New("this is not the wire format of protobuf")
	ErrRange     = errors.New("the value does not fit its Go type")
	ErrLength    = errors.New("the length does not match the Go array")
	ErrSparse    = errors.New("it has too many large elements for its length in bytes")
	ErrDeep      = fmt.Errorf("it is nested more than %d deep", DepthMax)
	ErrLarge     = errors.New("it is larger than its limit")
)

// Error says where reading or writing a message failed, and why.
type Error struct {
	Path   string // Order.Lines.Item; an unknown field is named by its number
	Offset int    // of the field's value in the input; -1 when writing
	Err    error
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("wire: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("wire: %s at byte %d: %v", e.Path, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Failed returns the error for a field that could not be written.
func Failed(message, field string, err error) error {
	return place(message, field, -1, err)
}

// place adds a message and a field, or "" for no field, in front of the path of an
// inner error.
func place(message, field string, offset int, err error) error {
	e := &Error{Path: message, Offset: offset, Err: err}
	if field != "" {
		e.Path += "." + field
	}
	if inner, ok := err.(*Error); ok {
		e.Err = inner.Err
		if _, path, ok := strings.Cut(inner.Path, "."); ok { // its first part is the type of the field
			e.Path += "." + path
			if len(e.Path) > pathMax {
				e.Path = strings.ToValidUTF8(e.Path[:pathMax], "") + "…"
			}
		}
		if offset >= 0 && inner.Offset >= 0 {
			e.Offset += inner.Offset
		}
	}
	return e
}

// fieldName finds the name for a number in "1 Account 2 Cents".
func fieldName(fields string, number uint64) string {
	n := strconv.FormatUint(number, 10)
	words := strings.Fields(fields)
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == n {
			return words[i+1]
		}
	}
	return n
}

// reason translates an error code of protowire, which is below 0.
func reason(n int) error {
	if errors.Is(protowire.ParseError(n), protowire.ParseError(-1)) {
		return ErrTruncated
	}
	return ErrMalformed
}
