package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/script"
)

// TestDecode runs the transcripts in testdata. Their commands are
//
//	text JSON    decodes a whole request
//	KIND JSON    decodes a request with this kind and data
//
// and the output is the request as it was understood, or the reason for which it was
// refused. A line with a kind and a corrId shows them if they are not those of the
// command.
func TestDecode(t *testing.T) {
	script.Run(t, "testdata/decode/*.txt", func(t *testing.T) func([]string) ([]string, error) {
		return func(words []string) ([]string, error) {
			text := strings.Join(words[1:], " ")
			if words[0] != "text" {
				text = envelopeOf(words[0], text)
			}
			r, err := DecodeRequest([]byte(text))
			var lines []string
			if words[0] == "text" {
				lines = append(lines, fmt.Sprintf("kind %q, corrId %q", r.Kind, r.Head.CorrID))
			}
			if err != nil {
				return append(lines, "refused: "+err.Error()), nil
			}
			return append(lines, string(AppendRequest(nil, &r))), nil
		}
	})
}

func envelopeOf(kind, data string) string {
	return `{"kind":"` + kind + `","head":{"corrId":"7","version":"2026-04-01"},"data":` + data + `}`
}

func TestEveryKindHasAnOperation(t *testing.T) {
	for name, k := range kinds {
		f := fields{action: PromiseCreate{}}
		if k.action == "promise.settle" {
			f.action = PromiseSettle{}
		}
		if got := k.build(&f).Kind(); got != name {
			t.Errorf("the operation of kind %s has kind %s", name, got)
		}
	}
}

func TestLimits(t *testing.T) {
	pairs := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":""`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	tagged := func(tags string) string { return `{"id":"a","timeoutAt":1,"tags":` + tags + `}` }
	listed := func(n int) string {
		return `{"pid":"p","tasks":[` + strings.Repeat(`{"id":"a","version":1},`, n-1) + `{"id":"a","version":1}]}`
	}
	deep := func(n int) string {
		return `{"id":"a","x":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}`
	}
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		name, kind string
		data       func(n int) string
		limit      int
		problem    string
	}{
		{"id", "promise.get", func(n int) string { return `{"id":"` + text(n) + `"}` }, MaxID, "data.id is longer than 2048 bytes"},
		{"tags", "promise.create", func(n int) string { return tagged(pairs(n)) }, MaxTags, "data.tags has more than 64 entries"},
		{"key", "promise.create", func(n int) string { return tagged(`{"` + text(n) + `":""}`) }, MaxTagKey, `data.tags has the key "` + text(40) + `", which is longer than 256 bytes`},
		{"tag", "promise.create", func(n int) string { return tagged(`{"k":"` + text(n) + `"}`) }, MaxTagValue, `data.tags["k"] is longer than 4096 bytes`},
		{"header", "promise.create", func(n int) string { return `{"id":"a","timeoutAt":1,"param":{"headers":{"k":"` + text(n) + `"}}}` }, MaxTagValue, `data.param.headers["k"] is longer than 4096 bytes`},
		{"tasks", "task.heartbeat", listed, MaxActions, "data.tasks has more than 10000 elements"},
		{"depth", "promise.get", deep, MaxDepth, "the request is nested more than 32 levels deep"},
		{"cursor", "task.search", func(n int) string { return `{"cursor":"` + text(n) + `"}` }, MaxCursor, "data.cursor is longer than 4096 bytes"},
		{"cron", "schedule.create", func(n int) string {
			return `{"id":"a","cron":"` + text(n) + `","promiseId":"a","promiseTimeout":1}`
		}, MaxCron, "data.cron is longer than 256 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := DecodeRequest([]byte(envelopeOf(test.kind, test.data(test.limit)))); err != nil {
				t.Errorf("%d: %v", test.limit, err)
			}
			r, err := DecodeRequest([]byte(envelopeOf(test.kind, test.data(test.limit+1))))
			if err == nil || err.Error() != test.problem {
				t.Errorf("%d: got %v, want %s", test.limit+1, err, test.problem)
			}
			if r.Op != nil || r.Kind != test.kind && test.name != "depth" || r.Head.CorrID != "7" {
				t.Errorf("a refused request has operation %v, kind %q and corrId %q", r.Op, r.Kind, r.Head.CorrID)
			}
		})
	}
}

// TestHugeValues checks that a huge value is refused without being repeated.
func TestHugeValues(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for _, text := range []string{
		envelopeOf("promise.get", `{"id":"`+huge+`"}`),
		envelopeOf(huge, `{}`),
		`{"kind":"promise.get","head":{"corrId":"` + huge + `","version":"2026-04-01"},"data":{"id":"a"}}`,
		`{"kind":"promise.get","head":{"corrId":"1","version":"` + huge + `"},"data":{"id":"a"}}`,
		`{"kind":"promise.get","head":{"corrId":"1","version":"2026-04-01","auth":"` + huge + `"},"data":{"id":"a"}}`,
		envelopeOf("promise.create", `{"id":"a","timeoutAt":1,"tags":{"`+huge+`":""}}`),
		envelopeOf("promise.create", `{"id":"a","timeoutAt":1,"tags":{"`+huge+`":1}}`),
		envelopeOf("promise.create", `{"id":"a","timeoutAt":`+strings.Repeat("1", 1<<20)+`}`),
		envelopeOf("promise.get", strings.Repeat("[", 1<<20)),
		envelopeOf("promise.get", strings.Repeat(`{"a":`, 1<<20)),
		strings.Repeat("[", 1<<20),
	} {
		r, err := DecodeRequest([]byte(text))
		if err == nil {
			t.Fatalf("%.80s…: accepted", text)
		}
		if n := len(err.Error()) + len(r.Kind) + len(r.Head.CorrID) + len(r.Head.Version) + len(r.Head.Auth); n > 300 {
			t.Errorf("%.80s…: the refusal has %d bytes", text, n)
		}
	}
}

func TestNotUTF8(t *testing.T) {
	for _, id := range []string{"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"} {
		if _, err := DecodeRequest([]byte(envelopeOf("promise.get", `{"id":"`+id+`"}`))); err == nil || err.Error() != "the request is not valid UTF-8" {
			t.Errorf("%q: %v", id, err)
		}
		if err := Check(PromiseGet{ID: id}); err == nil || err.Error() != "id is not valid UTF-8" {
			t.Errorf("Check %q: %v", id, err)
		}
	}
}

// FuzzDecodeRequest checks that a request that is accepted is JSON, within the limits,
// and the same after it was written and read again.
func FuzzDecodeRequest(f *testing.F) {
	for kind := range kinds {
		f.Add([]byte(envelopeOf(kind, `{"id":"a","awaited":"a","awaiter":"b","address":"c","pid":"p","ttl":1,"version":1,"timeoutAt":1,"state":"resolved","action":`+
			envelopeOf("promise.settle", `{"id":"a","state":"resolved","value":{"data":"x","headers":{"a":"b"}}}`)+
			`,"actions":[`+envelopeOf("promise.register_callback", `{"awaited":"a","awaiter":"b"}`)+`],"tasks":[{"id":"a","version":1}],"cron":"* * * * *","promiseId":"a","promiseTimeout":1,"time":1}`)))
	}
	f.Add([]byte(envelopeOf("promise.create", `{"id":"\ud83d\ude00","timeoutAt":1e3,"tags":{"a":"\u0000"}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Request
		var err error
		allocated.Within(t, 200*len(text), func() { r, err = DecodeRequest(text) })
		if err != nil {
			if r.Op != nil {
				t.Fatal("an error comes with an operation")
			}
			if !utf8.ValidString(err.Error()) {
				t.Fatalf("the error is not text: %q", err)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatal("accepted, but not JSON")
		}
		if err := Check(r.Op); err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		again := AppendRequest(nil, &r)
		r2, err := DecodeRequest(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if !reflect.DeepEqual(normal(r.Op), normal(r2.Op)) {
			t.Fatalf("got  %#v\nwant %#v", r2.Op, r.Op)
		}
		if bytes.ContainsAny(again, "\n\r") {
			t.Fatalf("the request has a line break: %q", again)
		}
	})
}

// normal returns an operation as it is after it was written and read: tags and headers
// that are empty are absent.
func normal(op Operation) any {
	text, err := json.Marshal(op)
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`"tags":{}`, `"tags":null`, `"Tags":{}`, `"Tags":null`, `"promiseTags":{}`, `"promiseTags":null`, `"Tasks":null`, `"Tasks":[]`, `"tasks":null`, `"tasks":[]`, `"Actions":null`, `"Actions":[]`).Replace(string(text))
}

// FuzzScanner compares the scanner with encoding/json on all text. They differ only in
// depth, and in surrogates, which encoding/json replaces.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e+3,true,false,null,"\u00e9\n"]}`, `[]`, `"\ud800"`, `1e5`, `-0.0`, ` [ ] `, `{"a":1,}`, `tru`, "\"\x01\""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		s := scanner{text: []byte(text)}
		err := s.skip()
		if err == nil {
			err = s.end()
		}
		_, broken := err.(syntaxError)
		if valid := json.Valid([]byte(text)); valid == broken {
			if _, other := err.(*Error); !other {
				t.Fatalf("valid %v, but %v", valid, err)
			}
		}
		var want string
		s = scanner{text: []byte(text)}
		if got, err := s.string(); err == nil && s.end() == nil {
			if err := json.Unmarshal([]byte(text), &want); err != nil || got != want {
				t.Fatalf("got %q, want %q, %v", got, want, err)
			}
		}
	})
}
