package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// The SDKs of durable promises write a value as base64 of JSON. The server does not read
// it. The commands show and take the JSON, or with --raw the text itself.

// readData returns the JSON in the data of a value, in one line. It returns false if the
// data is absent or not in the form of the SDKs.
func readData(v protocol.Value) (json.RawMessage, bool) {
	if v.Data == nil || *v.Data == "" { // the SDK writes undefined as ""
		return nil, false
	}
	decoded, err := base64.StdEncoding.DecodeString(*v.Data)
	if err != nil || !utf8.Valid(decoded) {
		return nil, false
	}
	var line bytes.Buffer
	if json.Compact(&line, decoded) != nil {
		return nil, false
	}
	return line.Bytes(), true
}

// dataText returns the data of a value in one line, or a dash.
func dataText(v protocol.Value, raw bool) string {
	if decoded, ok := readData(v); ok && !raw {
		return string(decoded)
	}
	if v.Data == nil {
		return unknown
	}
	return orNone(*v.Data)
}

// writeData returns data as the value of a promise. Text that is not JSON becomes a JSON
// string. With raw the text is not changed.
func writeData(text string, raw bool) *string {
	if raw {
		return &text
	}
	return new(base64.StdEncoding.EncodeToString(jsonOf(text)))
}

// jsonOf returns text if it is JSON, and otherwise the JSON string with this text.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return quotedJSON(text)
}

func quotedJSON(text string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string is always encoded
	return bytes.TrimSpace(b.Bytes())
}

// A call is the parameter of a promise that calls a function, in the form of the SDKs.
type call struct {
	Func    string            `json:"func"`
	Args    []json.RawMessage `json:"args"`
	Version int               `json:"version"`
}

// value returns the call as the parameter of a promise.
func (c call) value() (protocol.Value, error) {
	if c.Args == nil {
		c.Args = []json.RawMessage{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return protocol.Value{}, err
	}
	return protocol.Value{Data: new(base64.StdEncoding.EncodeToString(bytes.TrimSpace(b.Bytes())))}, nil
}

// functionOf returns the name of the function that a promise calls, or "".
func functionOf(p *protocol.Promise) string {
	decoded, ok := readData(p.Param)
	if !ok {
		return ""
	}
	var c struct {
		Func string `json:"func"`
	}
	if json.Unmarshal(decoded, &c) != nil { // a parameter of another form
		return ""
	}
	return c.Func
}

// errorOf returns the message of the error with which a promise was rejected, or "".
func errorOf(p *protocol.Promise) string {
	decoded, ok := readData(p.Value)
	if !ok || p.State == protocol.Resolved {
		return ""
	}
	var e struct {
		Message string `json:"message"`
	}
	var text string
	if json.Unmarshal(decoded, &e) == nil {
		return e.Message
	} else if json.Unmarshal(decoded, &text) == nil {
		return text
	}
	return string(decoded)
}

// pairs parses NAME=VALUE arguments. flag is their name in errors.
func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--%s must have the form NAME=VALUE, got %q", flag, pair)
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("--%s names %q twice", flag, name)
		}
		m[name] = value
	}
	return m, nil
}

// joined returns NAME=VALUE for each entry, in the order of names.
func joined(m map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, name+"="+m[name])
	}
	return list
}

// dataFlags are the flags of commands that send a value.
type dataFlags struct {
	text    string
	headers []string
	raw     bool
	given   bool
}

// value returns the value that the flags describe.
func (d *dataFlags) value() (protocol.Value, error) {
	headers, err := pairs("header", d.headers)
	v := protocol.Value{Headers: headers}
	if d.given {
		v.Data = writeData(d.text, d.raw)
	} else if d.raw {
		err = errors.Join(err, errors.New("--raw needs --data"))
	}
	return v, err
}
