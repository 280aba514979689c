package border

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
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

// testBorder returns the border of a topology in which an external processor sends messages of
// at most limit bytes to an instance.
func testBorder(t *testing.T, opts ...piper.Option) (b *Border, from *piper.External) {
	use := piper.UseBorder(func() piper.Border { b = New(nil); return b })
	p, err := piper.New(piper.Spec{
		Processors: []piper.Processor{
			{Name: "api", External: true},
			{Name: "to", Group: 1, Instances: 1, Instance: func(topo.Instance, bool) (piper.Parts, error) {
				return piper.Parts{Unit: new(piper.Unit), Out: new(piper.Out)}, nil
			}},
		},
		Edges:        []piper.Edge{{From: 0, To: 1, Message: "M", Capacity: 5, Aimed: true, Stays: true, AtMostOnce: true}},
		MessageLimit: limit,
	}, append(opts, use)...)
	if err != nil {
		t.Fatal(err)
	}
	return b, p.External(0)
}

// testOutlet returns an Outlet for the instance.
func (b *Border) testOutlet() *Outlet {
	return &Outlet{border: b, unit: b.Units(1)[0], Pair: Pair{To: 1}}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestRemoteRequest checks which reply or error a request of another node sends.
func TestRemoteRequest(t *testing.T) {
	border, _ := testBorder(t)
	for _, c := range []struct {
		name        string
		do          func(r *piper.Request[string, string])
		reply, fail string // substring of the error
		is          error
	}{
		{name: "reply", do: func(r *piper.Request[string, string]) { r.Reply("fine") }, reply: "fine"},
		{name: "empty reply", do: func(r *piper.Request[string, string]) { r.Reply("") }, reply: ""},
		{name: "longest reply", do: func(r *piper.Request[string, string]) { r.Reply("12345678") }, reply: "12345678"},
		{name: "too long", do: func(r *piper.Request[string, string]) { r.Reply("123456789") }, fail: "a reply (string) cannot be encoded: it has more than 8 bytes"},
		{name: "not encodable", do: func(r *piper.Request[string, string]) { r.Reply("bad") }, fail: "a reply (string) cannot be encoded: it is bad"},
		{name: "evicted", do: func(r *piper.Request[string, string]) { queue.Evictee(r).Evicted() }, fail: topo.ErrFull.Error(), is: topo.ErrFull},
		{name: "failed", do: func(r *piper.Request[string, string]) { r.Envelope().Fail(errNoReply) }, fail: errNoReply.Error(), is: errNoReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			count := 0
			r := RemoteRequest(border.Units(1)[0], "question", encodeText, func(b []byte, err error) {
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
			r.Envelope().Fail(errNoReply)
			if count != 1 {
				t.Errorf("%d replies, want 1", count)
			}
		})
	}
}

// TestRemoteRequestWithoutCaller checks that no reply is encoded if no caller waits.
func TestRemoteRequestWithoutCaller(t *testing.T) {
	border, _ := testBorder(t)
	r := RemoteRequest(border.Units(1)[0], "question", func([]byte, *string, int) ([]byte, error) { panic("encoded") }, nil)
	r.Reply("fine")
	r.Evicted()
	r.Envelope().Fail(errNoReply)
}

// TestEncodeRequest checks the encoding of requests, and what their callers get.
func TestEncodeRequest(t *testing.T) {
	border, x := testBorder(t)
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
			var calls piper.Calls[string, string]
			r := calls.Request(c.message)
			call, stopped := r, canceled(t)
			o := border.testOutlet()
			b, err := EncodeRequest(o, encodeText, decodeText)([]byte("before"), &r, len("before")+limit)
			if (err != nil) != c.refused {
				t.Fatalf("the message was refused: %v", err)
			}
			if !c.refused {
				number, n := binary.Uvarint(b[len("before"):])
				if number == 0 || string(b[len("before")+n:]) != c.message {
					t.Fatalf("encoded %q", b)
				}
				if _, err := calls.Wait(stopped, x, call, 0); !errors.Is(err, context.Canceled) {
					t.Fatalf("the call ended before the reply: %v", err)
				}
				o.Reply("n2", number, c.reply, c.err)
				o.Reply("n2", number, []byte("again"), nil)
			}
			got, err := calls.Wait(stopped, x, call, 0)
			switch {
			case c.is == nil && (err != nil || got != c.want):
				t.Errorf("%q, %v; want %q", got, err, c.want)
			case c.is != nil && (!errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %v: %s", err, c.is, c.want)
			}
			if got, err := calls.Wait(stopped, x, call, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("the call has a second outcome: %q, %v", got, err)
			}
		})
	}
}

// TestUnhandledCall checks the error of a call whose message reached no handler.
func TestUnhandledCall(t *testing.T) {
	border, x := testBorder(t)
	unreachable := errors.New("the node cannot be reached")
	for _, dropped := range []error{unreachable, topo.ErrStopping} {
		var calls piper.Calls[string, string]
		r := calls.Request("hello")
		call := r
		o := border.testOutlet()
		if _, err := EncodeRequest(o, encodeText, decodeText)(nil, &r, limit); err != nil {
			t.Fatal(err)
		}
		o.resolveCalls(1, dropped)
		_, err := calls.Wait(canceled(t), x, call, 0)
		if !errors.Is(err, topo.ErrFailed) || !errors.Is(err, dropped) || strings.Contains(err.Error(), "handler") {
			t.Errorf("%v: %v", dropped, err)
		}
	}
}

// TestNobodyWaits passes on requests and messages, and settles some of them.
func TestNobodyWaits(t *testing.T) {
	border, x := testBorder(t)
	const (
		gaveUp = iota
		waits
		replied
		refused // it cannot be encoded
		message // no caller
	)
	for _, c := range []struct {
		passed        []int
		settled       int
		want, replied bool
	}{
		{[]int{}, 0, true, true},
		{[]int{gaveUp}, 0, true, true},
		{[]int{waits}, 0, false, false},
		{[]int{replied}, 0, false, true},
		{[]int{message}, 0, false, false},
		{[]int{gaveUp, gaveUp, gaveUp}, 0, true, true},
		{[]int{gaveUp, replied, gaveUp}, 0, false, true},
		{[]int{gaveUp, refused, gaveUp}, 0, true, true},
		{[]int{refused, replied}, 0, false, true},
		{[]int{refused, message}, 0, false, false},
		{[]int{gaveUp, waits}, 0, false, false},
		{[]int{gaveUp, message}, 0, false, false},
		{[]int{message, gaveUp}, 0, false, false},
		{[]int{message, gaveUp}, 1, true, true},
		{[]int{gaveUp, message}, 1, false, false},
		{[]int{waits, gaveUp, gaveUp}, 1, true, true},
		{[]int{gaveUp, gaveUp}, 2, true, true},
	} {
		o := border.testOutlet()
		for _, kind := range c.passed {
			var calls piper.Calls[string, string]
			text := "hello"
			if kind == refused {
				text = "bad"
			}
			r := calls.Request(text)
			if kind == message {
				r = piper.NoReply[string, string](text)
			}
			call := r
			b, err := EncodeRequest(o, encodeText, decodeText)(nil, &r, limit)
			if (err != nil) != (kind == refused) {
				t.Fatal(err)
			}
			switch kind {
			case gaveUp:
				_, _ = calls.Wait(canceled(t), x, call, 0)
			case replied:
				number, _ := binary.Uvarint(b)
				o.Reply("n2", number, nil, nil)
			case refused:
				continue
			}
			o.sent++
		}
		o.settling.Add(uint64(c.settled)) // the settlements may be counted later
		n := int(o.sent) - c.settled
		if got := o.NobodyWaits(n, false); got != c.want {
			t.Errorf("%v, %d settled: %v", c.passed, c.settled, got)
		}
		if got := o.NobodyWaits(n, true); got != c.replied {
			t.Errorf("%v, %d settled, with replies: %v", c.passed, c.settled, got)
		}
	}
}

// TestEncodeRequestWithoutCaller checks the encoding of a message whose reply is not needed.
func TestEncodeRequestWithoutCaller(t *testing.T) {
	border, _ := testBorder(t)
	r := piper.NoReply[string, string]("hello")
	b, err := EncodeRequest(border.testOutlet(), encodeText, decodeText)(nil, &r, limit)
	if err != nil || string(b) != "\x00hello" {
		t.Errorf("%q, %v", b, err)
	}
}
