package durable

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A parameter is the data of the promise of a call, in the form of the SDKs.
type parameter struct {
	Func    string            `json:"func"`
	Args    []json.RawMessage `json:"args"`
	Version int               `json:"version"`
}

// callVersion is the version of every function that this package calls or runs. The SDKs
// register several versions of a function; durable functions in Go use Context.Version.
const callVersion = 1

// dataMax bounds the JSON of a result or an argument in bytes. As base64 text it fits into
// a request of the default length, with 64 KiB for ids and tags.
const dataMax = (protocol.MaxBody - 64<<10) / 4 * 3

// encode returns the value of a promise: base64 text of JSON.
func encode(v any) (protocol.Value, error) {
	data, err := marshal(v)
	if err == nil && len(data) > dataMax {
		err = fmt.Errorf("it has %d bytes, and the limit is %d", len(data), dataMax)
	}
	if err != nil {
		return protocol.Value{}, err
	}
	return encoded(data), nil
}

// errText is the error of a string that JSON would change: the receiver would get another one.
var errText = errors.New("a string in it is not valid UTF-8; use []byte")

// marshal is json.Marshal, which replaces bytes that are not UTF-8 without an error: it writes
// the escape \ufffd for them, and U+FFFD itself without an escape.
func marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	for rest := data; ; {
		i := bytes.Index(rest, []byte(`\ufffd`))
		if i < 0 {
			return data, nil
		}
		before := rest[:i]
		if (i-len(bytes.TrimRight(before, `\`)))%2 == 0 { // else it is the text \ufffd
			return nil, errText
		}
		rest = rest[i+len(`\ufffd`):]
	}
}

func encoded(data []byte) protocol.Value {
	text := base64.StdEncoding.EncodeToString(data)
	return protocol.Value{Data: &text}
}

// encodeError returns the value of a rejected promise.
func encodeError(e *Error) protocol.Value {
	v, err := encode(errorJSON{Type: "error", Name: e.Name, Message: e.Message, Final: e.Final})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return v
}

// decode returns the JSON of a value: "null" for the undefined of TypeScript.
func decode(v protocol.Value) (json.RawMessage, error) { return appendDecoded(nil, v) }

// appendDecoded is decode into the space of buf, which may be nil.
func appendDecoded(buf []byte, v protocol.Value) (json.RawMessage, error) {
	if v.Data == nil || *v.Data == "" {
		return append(buf[:0], "null"...), nil
	}
	buf = slices.Grow(buf[:0], base64.StdEncoding.DecodedLen(len(*v.Data)))
	n, err := base64.StdEncoding.Decode(buf[:cap(buf)], []byte(*v.Data))
	if err != nil {
		return nil, fmt.Errorf("the data of the promise is not base64 text: %w", err)
	}
	return buf[:n], nil
}

// encodeCall returns the parameter of a call.
func encodeCall(function string, arg any) (protocol.Value, error) {
	data, err := marshal(arg)
	if err != nil {
		return protocol.Value{}, err
	}
	return encode(parameter{Func: function, Args: []json.RawMessage{data}, Version: callVersion})
}

// decodeCall returns the function and the argument that a promise names. A call without
// an argument has the argument null.
func decodeCall(v protocol.Value) (function string, arg json.RawMessage, err error) {
	p, err := decodeParameter(v)
	if err != nil {
		return "", nil, err
	}
	if p.Func == "" || p.Version < 0 || p.Version > callVersion {
		return "", nil, fmt.Errorf("the parameter of the promise calls function %q in version %d", p.Func, p.Version)
	}
	arg = json.RawMessage("null")
	if len(p.Args) > 0 {
		arg = p.Args[0]
	}
	return p.Func, arg, nil
}

func decodeParameter(v protocol.Value) (p parameter, err error) {
	data, err := decode(v)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("the parameter of the promise is not a call: %w", err)
	}
	return p, nil
}

// equalArgument reports whether a recorded call has an argument, if it is read with the type
// of the argument.
func equalArgument(recorded protocol.Value, arg any) bool {
	_, data, err := decodeCall(recorded)
	if err != nil || arg == nil {
		return err == nil && string(data) == "null"
	}
	value := reflect.New(reflect.TypeOf(arg))
	if json.Unmarshal(data, value.Interface()) != nil {
		return false
	}
	before, err1 := json.Marshal(value.Interface())
	now, err2 := json.Marshal(arg)
	return err1 == nil && err2 == nil && bytes.Equal(before, now)
}

// outcomeOf returns the JSON or the error of a settled promise.
func outcomeOf(p *protocol.Promise) (json.RawMessage, error) { return appendOutcome(nil, p) }

// appendOutcome is outcomeOf with the JSON in the space of buf, which may be nil.
func appendOutcome(buf []byte, p *protocol.Promise) (json.RawMessage, error) {
	switch p.State {
	case protocol.RejectedCancel:
		return nil, ErrCanceled
	case protocol.RejectedTimeout:
		return nil, ErrTimedOut
	}
	data, err := appendDecoded(buf, p.Value)
	if err == nil && p.State == protocol.Rejected {
		err = rejection(data)
	}
	return data, err
}
