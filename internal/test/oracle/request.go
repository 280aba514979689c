package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// timeMax is the largest time, and the largest number.
const timeMax = 1<<62 - 1

// version of the protocol.
const version = "2026-04-01"

// object is a JSON object.
type object = map[string]any

// answer is a status with the data of a response: an object below 400, else a sentence.
type answer struct {
	status int
	data   any
}

func ok(data object) answer { return answer{200, data} }

func refuse(status int, format string, args ...any) answer {
	return answer{status, fmt.Sprintf(format, args...)}
}

// Apply carries out a request, and returns the response and the messages that it sends.
// Wall and run are the two clocks in milliseconds: wall is compared with deadlines,
// delays and schedules, run with leases and retries.
func (s *Server) Apply(wall, run int64, request []byte) (response []byte, messages []Sent) {
	s.begin(wall, run)
	r := s.respond(request)
	return encode(r), s.sent
}

func (s *Server) respond(request []byte) object {
	var envelope struct {
		Kind string `json:"kind"`
		Head struct {
			CorrID  string `json:"corrId"`
			Version string `json:"version"`
			Origin  string `json:"resonate:origin"`
		} `json:"head"`
		Data any `json:"data"`
	}
	d := json.NewDecoder(bytes.NewReader(request))
	d.UseNumber()
	err := d.Decode(&envelope)
	data, isObject := envelope.Data.(object)
	var a answer
	switch {
	case err != nil:
		a = refuse(400, "the request is not valid JSON: %v", err)
	case envelope.Kind == "":
		a = refuse(400, "kind is empty")
	case !isObject:
		a = refuse(400, "data must be an object")
	case envelope.Head.Version != version:
		a = refuse(400, "the version of the protocol must be %s", version)
	default:
		a = s.handle(envelope.Kind, envelope.Head.Origin, data)
	}
	return response(envelope.Kind, envelope.Head.CorrID, a)
}

func response(kind, corrID string, a answer) object {
	return object{"kind": kind, "head": object{"corrId": corrID, "status": a.status, "version": version}, "data": a.data}
}

// handle reads the data of a request and carries it out. A request with a wrong shape is
// refused first: 400 precedes all other guards.
func (s *Server) handle(kind, origin string, data object) answer {
	f := &fields{data: data}
	carryOut := s.handler(kind, origin, f)
	switch {
	case carryOut == nil:
		return refuse(501, "%s is not an operation", kind)
	case f.fault != "":
		return refuse(400, "%s", f.fault)
	}
	return carryOut()
}

// fields reads the fields of an object, and keeps the first fault.
type fields struct {
	data  object
	fault string
}

func (f *fields) fail(format string, args ...any) {
	if f.fault == "" {
		f.fault = fmt.Sprintf(format, args...)
	}
}

func (f *fields) text(name string) string {
	s, isText := f.data[name].(string)
	if !isText {
		f.fail("%s must be a string", name)
	}
	return s
}

// id returns a text that is a key: an id, a pid.
func (f *fields) id(name string) string {
	s := f.text(name)
	if !isID(s) {
		f.fail("%s must have 1 to 2,048 bytes of UTF-8 without U+0000", name)
	}
	return s
}

func isID(s string) bool {
	return len(s) >= 1 && len(s) <= 2048 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// number returns an integer that is not below the lowest one.
func (f *fields) number(name string, lowest int64) int64 {
	n, _ := f.data[name].(json.Number)
	r, isNumber := new(big.Rat).SetString(string(n))
	if !isNumber || !r.IsInt() || r.Cmp(big.NewRat(lowest, 1)) < 0 || r.Cmp(big.NewRat(timeMax, 1)) > 0 {
		f.fail("%s must be an integer of at least %d", name, lowest)
		return 0
	}
	return r.Num().Int64()
}

// millis returns a time. A fraction of a millisecond is rounded up: the SDK sends them.
func (f *fields) millis(name string, lowest int64) int64 {
	n, _ := f.data[name].(json.Number)
	r, isNumber := new(big.Rat).SetString(string(n))
	if !isNumber {
		f.fail("%s must be a number", name)
		return 0
	}
	up := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	whole := &fields{data: object{name: json.Number(up.Div(up, r.Denom()).String())}}
	ms := whole.number(name, lowest)
	f.join(whole)
	return ms
}

// optional calls read if the object has the field.
func optional[T any](f *fields, name string, read func(string) T) (v T) {
	if x, exists := f.data[name]; exists && x != nil {
		return read(name)
	}
	return v
}

func (f *fields) object(name string) *fields {
	o, isObject := f.data[name].(object)
	if !isObject {
		f.fail("%s must be an object", name)
	}
	return &fields{data: o}
}

func (f *fields) list(name string) []*fields {
	l, isList := f.data[name].([]any)
	if !isList {
		f.fail("%s must be a list", name)
	}
	items := make([]*fields, len(l))
	for i, item := range l {
		o, isObject := item.(object)
		if !isObject {
			f.fail("%s must be a list of objects", name)
		}
		items[i] = &fields{data: o}
	}
	return items
}

// strings returns a map of strings: tags or headers.
func (f *fields) strings(name string) map[string]string {
	m := map[string]string{}
	o := f.object(name).data
	for k, v := range o {
		s, isText := v.(string)
		if !isText || len(k) > 256 || len(s) > 4096 || strings.ContainsRune(k+s, 0) {
			f.fail("%s must have strings of at most 256 and 4,096 bytes without U+0000", name)
		}
		m[k] = s
	}
	if len(m) > 64 {
		f.fail("%s must have at most 64 entries", name)
	}
	return m
}

func (f *fields) tags(name string) map[string]string {
	if tags := optional(f, name, f.strings); tags != nil {
		return tags
	}
	return map[string]string{}
}

// targetTags returns the tags of a promise. Its target must be an address, its origin an
// id, and the delay of a target an instant.
func (f *fields) targetTags(name string) map[string]string {
	tags := f.tags(name)
	target, hasTarget := tags["resonate:target"]
	if hasTarget && !deliverable(target) {
		f.fail("%q is not an address", target)
	}
	if origin, hasOrigin := tags["resonate:origin"]; hasOrigin && !isID(origin) {
		f.fail("%q is not an id", origin)
	}
	if delay, hasDelay := tags["resonate:delay"]; hasTarget && hasDelay {
		if ms, err := strconv.ParseInt(delay, 10, 64); err != nil || ms < 0 {
			f.fail("%q is not an instant", delay)
		}
	}
	return tags
}

func (f *fields) value(name string) value {
	if v, exists := f.data[name]; !exists || v == nil {
		return value{}
	}
	inner := f.object(name)
	var v value
	if headers := optional(inner, "headers", inner.strings); len(headers) > 0 {
		v.Headers = maps.Clone(headers)
	}
	if _, exists := inner.data["data"]; exists {
		text := inner.text("data")
		v.Data = &text
	}
	if inner.fault != "" {
		f.fail("%s: %s", name, inner.fault)
	}
	return v
}

// action returns the request that is the field name.
func (f *fields) action(name string, kinds ...string) (kind, corrID string, data *fields) {
	inner := f.object(name)
	kind = inner.text("kind")
	head := optional(inner, "head", inner.object)
	if head == nil {
		head = &fields{}
	}
	corrID = optional(head, "corrId", head.text)
	optional(head, "version", head.text)
	inner.join(head)
	data = inner.object("data")
	known := false
	for _, k := range kinds {
		known = known || k == kind
	}
	if !known || inner.fault != "" {
		f.fail("%s must be a request of kind %s", name, strings.Join(kinds, " or "))
	}
	return kind, corrID, data
}

// join keeps the fault of an inner object.
func (f *fields) join(inner *fields) {
	if inner.fault != "" {
		f.fail("%s", inner.fault)
	}
}
