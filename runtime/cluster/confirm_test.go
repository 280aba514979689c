package cluster

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// TestConfirmationsWait checks when the confirmation of handled messages is sent: after
// confirmDelay, with another message, or when the sender needs it.
func TestConfirmationsWait(t *testing.T) {
	p := newProgram()
	top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
		return Open(p.config(2, t.TempDir(), nil), s)
	}, piper.Node("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.pool.Place(func(int, int) bool { return true }); err != nil {
		t.Fatal(err)
	}
	core := top.node.core
	core.begin(top.pool, nobody{})
	n2, err := core.newPeer("n2")
	if err != nil {
		t.Fatal(err)
	}
	if err := n2.message(firstLane, appendOpen(nil, piper.Pair{To: 1})); err != nil {
		t.Fatal(err)
	}
	in := n2.in[firstLane]
	if in.hurry < 2 {
		t.Fatalf("%d messages are confirmed without a delay: want an edge with room for more", in.hurry)
	}
	// handled says that more messages were handled, and whether a confirmation is sent then.
	handled := func(more uint64) bool {
		in.handled.Add(more)
		in.done = in.handled.Load()
		n2.confirm(in)
		n2.flush()
		return in.told == in.done
	}
	if handled(1) {
		t.Error("the first message is confirmed without a delay")
	}
	at, ok := core.next()
	if want := core.now + confirmDelay; !ok || at > want {
		t.Errorf("the node waits until %v, want %v", at, want)
	}
	core.now += confirmDelay - time.Nanosecond
	if handled(0) {
		t.Error("the first message is confirmed too early")
	}
	core.now += time.Nanosecond
	if !handled(0) {
		t.Error("the first message is not confirmed after the delay")
	}
	n2.session.Frame(core.now) // the hello; what is queued waits for the answer
	if !handled(1) {
		t.Error("a message is not confirmed with another one that is sent anyway")
	}
	if n := n2.session.Stats().QueuedMessages; n != 2 {
		t.Errorf("%d messages are queued, want 2 confirmations", n)
	}

	n3, err := core.newPeer("n3")
	if err != nil {
		t.Fatal(err)
	}
	if err := n3.message(firstLane, appendOpen(nil, piper.Pair{To: 1})); err != nil {
		t.Fatal(err)
	}
	n2, in = n3, n3.in[firstLane]
	if handled(in.hurry - 1) {
		t.Error("messages are confirmed without a delay although the sender has room")
	}
	if !handled(1) {
		t.Error("messages are not confirmed although the sender may have to wait")
	}
}
