package wire

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// NoLimit is for bounded codecs where nothing bounds what they append.
const NoLimit = math.MaxInt

// pathMax bounds the path of an Error, in bytes: of a list that contains itself it
// would name each round.
const pathMax = 200

// DepthMax is how deep a message may hold messages of its own type: beyond it a
// pointer leads in a circle, or the bytes are hostile.
const DepthMax = 1000

// Reasons for an Error.
var (
	ErrTruncated = errors.New("the input ends too early")
	ErrMalformed = errors.New("this is not the wire format of protobuf")
	ErrRange     = errors.New("the value does not fit into its Go type")
	ErrLength    = errors.New("the array of the Go type has another length")
	ErrSparse    = errors.New("its large elements are too many for so few bytes")
	ErrDeep      = fmt.Errorf("it is nested more than %d deep", DepthMax)
	ErrLarge     = errors.New("it is larger than its limit")
)

// Error says where reading or writing a message failed, and why.
type Error struct {
	Path   string // Order.Lines.Item; a field that is unknown by its number
	Offset int    // of the field's value in the input; -1 where there is none, as in writing
	Err    error
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("wire: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("wire: %s at byte %d: %v", e.Path, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Failed names the field of a message that could not be written.
func Failed(message, field string, err error) error {
	return place(message, field, -1, err)
}

// place puts a message and a field, "" for none, before the path of an error from
// within it.
func place(message, field string, offset int, err error) error {
	e := &Error{Path: message, Offset: offset, Err: err}
	if field != "" {
		e.Path += "." + field
	}
	if inner, ok := err.(*Error); ok {
		e.Err = inner.Err
		if _, path, ok := strings.Cut(inner.Path, "."); ok { // its first part is the field's type
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

// fieldName finds a number in "1 Account 2 Cents".
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

// reason translates what protowire says of n, which is below 0.
func reason(n int) error {
	if errors.Is(protowire.ParseError(n), protowire.ParseError(-1)) {
		return ErrTruncated
	}
	return ErrMalformed
}
