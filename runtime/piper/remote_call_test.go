package piper

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/queue"
	"github.com/topogen/topogen/runtime/topo"
)

// limit is the message limit of the tests in bytes.
const limit = 8

func encodeText(b []byte, m *string, _ int) ([]byte, error) {
	if *m == "bad" {
		return b, errors.New("it is bad")
	}
	return append(b, *m...), nil
}

func decodeText(b []byte, m *string) error {
	if string(b) == "bad" {
		return errors.New("it is bad")
	}
	*m = string(b)
	return nil
}

func testUnit() *Unit {
	p := &Pool{options: options{messageLimit: limit}}
	return &Unit{proc: &processor{pool: p}}
}

// TestRemoteRequest checks which reply or error a request of another node sends.
func TestRemoteRequest(t *testing.T) {
	for _, c := range []struct {
		name        string
		do          func(r *Request[string, string])
		reply, fail string // substring of the error
		is          error
	}{
		{name: "reply", do: func(r *Request[string, string]) { r.Reply("fine") }, reply: "fine"},
		{name: "empty reply", do: func(r *Request[string, string]) { r.Reply("") }, reply: ""},
		{name: "longest reply", do: func(r *Request[string, string]) { r.Reply("12345678") }, reply: "12345678"},
		{name: "too long", do: func(r *Request[string, string]) { r.Reply("123456789") }, fail: "a reply (string) cannot be encoded: it has more than 8 bytes"},
		{name: "not encodable", do: func(r *Request[string, string]) { r.Reply("bad") }, fail: "a reply (string) cannot be encoded: it is bad"},
		{name: "evicted", do: func(r *Request[string, string]) { queue.Evictee(r).Evicted() }, fail: topo.ErrFull.Error(), is: topo.ErrFull},
		{name: "failed", do: func(r *Request[string, string]) { r.fail(errNoReply) }, fail: errNoReply.Error(), is: errNoReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			count := 0
			r := RemoteRequest(testUnit(), "question", encodeText, func(b []byte, err error) {
				count++
				switch {
				case c.fail == "" && (err != nil || string(b) != c.reply):
					t.Errorf("%q, %v; want %q", b, err, c.reply)
				case c.fail != "" && (err == nil || b != nil || !strings.Contains(err.Error(), c.fail)):
					t.Errorf("%q, %v; want %s", b, err, c.fail)
				case c.is != nil && (!errors.Is(err, c.is) || errors.Is(err, topo.ErrFailed)):
					t.Errorf("%v, want %v alone", err, c.is)
				}
			})
			c.do(&r)
			r.Reply("again")
			r.Evicted()
			r.fail(errNoReply)
			if count != 1 {
				t.Errorf("%d replies, want 1", count)
			}
		})
	}
}

// TestRemoteRequestWithoutCaller checks that no reply is encoded if no caller waits.
func TestRemoteRequestWithoutCaller(t *testing.T) {
	r := RemoteRequest(testUnit(), "question", func([]byte, *string, int) ([]byte, error) { panic("encoded") }, nil)
	r.Reply("fine")
	r.Evicted()
	r.fail(errNoReply)
}

// TestEncodeRequest checks the encoding of requests, and what their callers get.
func TestEncodeRequest(t *testing.T) {
	for _, c := range []struct {
		name, message string
		reply         []byte
		err           error
		want          string
		is            error
		refused       bool // the message cannot be encoded
	}{
		{name: "reply", message: "hello", reply: []byte("fine"), want: "fine"},
		{name: "error", message: "hello", err: errors.New("broken"), want: "broken", is: topo.ErrFailed},
		{name: "full", message: "hello", err: topo.ErrFull, is: topo.ErrFull},
		{name: "damaged reply", message: "hello", reply: []byte("bad"), want: "cannot be decoded", is: topo.ErrFailed},
		{name: "longest message", message: "1234567", reply: nil, want: ""},
		{name: "too long", message: "12345678", want: "a message (string) cannot be encoded: it has more than 8 bytes", is: topo.ErrFailed, refused: true},
		{name: "not encodable", message: "bad", want: "a message (string) cannot be encoded: it is bad", is: topo.ErrFailed, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls Calls[string, string]
			r := calls.Request(c.message)
			answer := r.call.answer
			o := &Outlet{unit: testUnit()}
			b, err := EncodeRequest(o, encodeText, decodeText)([]byte("before"), &r, len("before")+limit)
			if (err != nil) != c.refused {
				t.Fatalf("the message was refused: %v", err)
			}
			if !c.refused {
				number, n := binary.Uvarint(b[len("before"):])
				if number == 0 || string(b[len("before")+n:]) != c.message {
					t.Fatalf("encoded %q", b)
				}
				if len(answer) > 0 {
					t.Fatal("the call ended before the reply")
				}
				o.Reply("n2", number, c.reply, c.err)
				o.Reply("n2", number, []byte("again"), nil)
			}
			got := <-answer
			switch {
			case c.is == nil && (got.err != nil || got.answer != c.want):
				t.Errorf("%q, %v; want %q", got.answer, got.err, c.want)
			case c.is != nil && (!errors.Is(got.err, c.is) || !strings.Contains(got.err.Error(), c.want)):
				t.Errorf("%v, want %v: %s", got.err, c.is, c.want)
			}
			if len(answer) > 0 {
				t.Error("the call has a second outcome")
			}
		})
	}
}

// TestUnhandledCall checks the error of a call whose message reached no handler.
func TestUnhandledCall(t *testing.T) {
	unreachable := errors.New("the node cannot be reached")
	for _, dropped := range []error{unreachable, topo.ErrStopping} {
		var calls Calls[string, string]
		r := calls.Request("hello")
		answer := r.call.answer
		o := &Outlet{unit: testUnit()}
		if _, err := EncodeRequest(o, encodeText, decodeText)(nil, &r, limit); err != nil {
			t.Fatal(err)
		}
		o.resolveCalls(1, dropped)
		err := (<-answer).err
		if !errors.Is(err, topo.ErrFailed) || !errors.Is(err, dropped) || strings.Contains(err.Error(), "handler") {
			t.Errorf("%v: %v", dropped, err)
		}
	}
}

// TestEncodeRequestWithoutCaller checks the encoding of a message whose reply is not needed.
func TestEncodeRequestWithoutCaller(t *testing.T) {
	r := NoReply[string, string]("hello")
	b, err := EncodeRequest(&Outlet{unit: testUnit()}, encodeText, decodeText)(nil, &r, limit)
	if err != nil || string(b) != "\x00hello" {
		t.Errorf("%q, %v", b, err)
	}
}
