package cluster

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// TestConfirmationsWait checks when the confirmation of handled messages is sent: after
// confirmDelay, with another message, or when the sender needs it.
func TestConfirmationsWait(t *testing.T) {
	n2 := newPeerOf(t, "n2")
	core := n2.core
	if err := n2.message(firstLane, appendOpen(nil, border.Pair{To: 1})); err != nil {
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
		t.Error("a message is not confirmed in a frame that is sent anyway")
	}
	if n := n2.session.Stats().QueuedMessages; n != 2 {
		t.Errorf("%d messages are queued, want 2 confirmations", n)
	}

	n3, err := core.newPeer("n3")
	if err != nil {
		t.Fatal(err)
	}
	if err := n3.message(firstLane, appendOpen(nil, border.Pair{To: 1})); err != nil {
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

// newPeerOf returns a peer of a node that runs all instances of a program.
func newPeerOf(t *testing.T, name string) *nodePeer {
	other, err := coreOf(t, everywhere).newPeer(name)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// TestRepliesOfAFormerProcess restarts a node while a handler has its call. The reply must
// not reach the new process, whose calls have the same numbers.
func TestRepliesOfAFormerProcess(t *testing.T) {
	n2 := newPeerOf(t, "n2")
	open := appendOpen(nil, border.Pair{To: 1})
	if err := n2.message(firstLane, open); err != nil {
		t.Fatal(err)
	}
	in := n2.in[firstLane]
	of := func(process uint64) *reply { return &reply{in: in, call: border.Call{Process: process, Number: 1}} }
	former := in.process
	n2.event(session.PeerRestarted{})
	if err := n2.message(firstLane, open); err != nil {
		t.Fatal(err)
	}
	before := n2.session.Stats().MessagesQueuedTotal
	n2.sendReply(of(former))
	if n := n2.session.Stats().MessagesQueuedTotal - before; n != 0 {
		t.Error("the reply to a call of the former process was sent to the new one")
	}
	n2.sendReply(of(in.process))
	if n := n2.session.Stats().MessagesQueuedTotal - before; n != 1 {
		t.Errorf("%d replies were sent to the new process, want 1", n)
	}
}

// everywhere places all instances on the node.
func everywhere(int, int) bool { return true }

// coreOf returns the core of the node n1, which runs some instances of a program.
func coreOf(t *testing.T, isHere func(processor, instance int) bool) *nodeCore {
	p := newProgram()
	top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
		return Open(p.config(2, t.TempDir(), nil), s)
	}, piper.Node("n1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.border.Place(isHere); err != nil {
		t.Fatal(err)
	}
	top.node.core.begin(top.border, noPlaces{})
	return asNode(top.node.core)
}

// asNode returns the core of a node.
func asNode(c *core) *nodeCore { return c.role.(*nodeCore) }
