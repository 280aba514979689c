package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/topo"
)

// TestReplies writes and reads replies and errors of handlers.
func TestReplies(t *testing.T) {
	long := strings.Repeat("x", 2*errorBytesMax)
	for _, c := range []struct {
		name, reply string
		err         error
		want        string // text of the error
	}{
		{name: "reply", reply: "fine"},
		{name: "empty reply"},
		{name: "error", err: errors.New("no"), want: "no"},
		{name: "error without a text", err: errors.New("")},
		{name: "error whose text panics", err: badText{}, want: "%!v(PANIC=Error method: no text)"},
		{name: "long error", err: errors.New(long), want: long[:errorBytesMax]},
		{name: "a full queue", err: topo.ErrFull, want: topo.ErrFull.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReader(appendReply(nil, 20, 7, []byte(c.reply), c.err)[1:])
			lane, m := readReply(r)
			if r.Err != nil || lane != 20 || m.call.Number != 7 || string(m.data) != c.reply {
				t.Errorf("lane %d, call %d, reply %q, %v", lane, m.call, m.data, r.Err)
			}
			if (m.err == nil) != (c.err == nil) || m.err != nil && m.err.Error() != c.want {
				t.Errorf("got an error of %d bytes: %.20v", len(m.err.Error()), m.err)
			}
			if c.err == topo.ErrFull && !errors.Is(m.err, topo.ErrFull) {
				t.Errorf("got %v, want topo.ErrFull", m.err)
			}
		})
	}
}

type badText struct{}

func (badText) Error() string { panic("no text") }
