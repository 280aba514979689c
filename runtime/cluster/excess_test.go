package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper/border"
)

// manyProcesses restarts the process of a sending node again and again, while the handlers of the
// receiving node do not run. More messages arrive than the pair may have there. Then the handlers
// go on, and all messages of the last process must be handled once, in order, and confirmed.
func manyProcesses(t *testing.T, seed uint64, edge designEdge) {
	const messages, limit, restarts = 100, 40, 16
	edge.from, edge.to, edge.capacity = 0, 1, 8
	d := &design{nodes: 2, messages: messages, batch: 4, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n1", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1},
	}, edges: []designEdge{edge}}
	d.groups = d.components()
	s := simulate(seed, d)
	s.pairMax, s.ledger.restarted = limit, true
	s.at(0, "the handlers of n2 wait", func() { s.nodes[1].busyUntil = time.Hour })
	last := 0
	for i := range restarts {
		s.at(time.Duration(i+3)*time.Second, "restart n1", func() {
			last = s.ledger.edges[0][0].sent
			s.nodes[0].state = simGone
			s.nodes[0] = newSimNode(s, 0)
		})
	}
	handled := 0
	s.at(time.Minute, "the handlers of n2 go on", func() {
		for _, in := range s.nodes[1].core.peers["n1"].pairs {
			if in.waiting() > limit || in.waiting() < limit/2 {
				t.Errorf("%d messages wait on n2, want at most %d, and many of the processes of n1", in.waiting(), limit)
			}
		}
		s.nodes[1].busyUntil = s.now
		s.onReceived = func(_ int, m *parcel) {
			if int(m.seq) > last {
				handled++
			}
		}
	})
	s.run()
	if f := s.failure(); f != "" {
		t.Fatal(f)
	}
	f := s.nodes[0].top.pool.Snapshot().Edges[0]
	if f.Sent < messages || handled != int(f.Sent) || f.Received != f.Sent || f.Len != 0 || f.Dropped != 0 {
		t.Errorf("the last process has the figures %+v, and %d of its messages were handled", f, handled)
	}
}

// TestMessagesOfManyProcesses runs manyProcesses.
func TestMessagesOfManyProcesses(t *testing.T) {
	for seed := range uint64(5) {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, once), func(t *testing.T) { manyProcesses(t, seed, designEdge{once: once}) })
		}
	}
}

// TestIgnoredUntilSentAgain fills a pair on the receiving node. It must ignore all further chunks until
// half of its limit is free and the sending node says that it sends the ignored chunks again.
func TestIgnoredUntilSentAgain(t *testing.T) {
	core := coreOf(t, everywhere)
	core.pairMax = 8
	p, err := core.newPeer("n2")
	if err != nil {
		t.Fatal(err)
	}
	send := func(m []byte, put, asked uint64) {
		t.Helper()
		if err := p.message(firstLane, m); err != nil {
			t.Fatal(err)
		}
		in := p.in[firstLane]
		p.confirm(in) // as for each message that was handled
		if n := p.session.Stats().MessagesQueuedTotal; in.put != put || n != asked {
			t.Errorf("%d messages were taken, and the sending node was asked %d times, want %d and %d", in.put, n, put, asked)
		}
	}
	chunk := chunkMessage(4, 0, make([]byte, 4))
	send(appendOpen(nil, border.Pair{To: 1}), 0, 0)
	send(chunk, 4, 0)
	send(chunk, 8, 0)
	send(chunk, 8, 0)
	p.in[firstLane].handled.Store(3)
	send(chunk, 8, 0)
	p.in[firstLane].handled.Store(4)
	send(chunk, 8, 1)
	send(chunk, 8, 1) // sent before the request has arrived
	send([]byte{pairAgain}, 8, 1)
	send(chunk, 12, 1)
	send(chunk, 12, 1)
}

// chunkMessage returns the message with a chunk.
func chunkMessage(messages, skip int, data []byte) []byte {
	return append(appendChunk(nil, messages, skip), data...)
}

// TestSendAgain asks for messages again. Messages
// that the other node has taken are confirmed in the meantime, and others are not.
func TestSendAgain(t *testing.T) {
	r := newRefilling(t, 0) // has sent three chunks with two messages each
	p := r.pair.peer
	check := func(what string, err error, refused bool, handled, given int) {
		t.Helper()
		if errors.Is(err, errMalformed) != refused {
			t.Errorf("%s: got the error %v, want one: %v", what, err, refused)
		}
		if r.handled != handled || r.pair.given != given {
			t.Errorf("%s: %d messages were handled and %d chunks are sent, want %d and %d", what, r.handled, r.pair.given, handled, given)
		}
		r.check(t)
	}
	check("nothing was sent", r.pair.sendAgain(2), true, 0, 0)
	p.transmit(p.core.now)
	check("a part of a chunk", r.pair.sendAgain(3), true, 0, 3)
	check("more than was sent", r.pair.sendAgain(7), true, 0, 3)
	r.send()
	r.send()
	check("not sent yet", r.pair.sendAgain(8), true, 0, 3)
	check("after four messages", r.pair.sendAgain(4), false, 0, 2)
	check("three of them", r.pair.confirm(3), false, 3, 1)
	check("fewer than are handled", r.pair.sendAgain(2), true, 3, 1)
	check("all of them, and a message that was not taken", r.pair.confirm(5), true, 4, 0)
	p.transmit(p.core.now)
	check("all", r.pair.confirm(10), false, 10, 0)
	check("nothing is left", r.pair.sendAgain(10), false, 10, 0)
	r.send()
	if kind, _ := r.pair.Next(nil); !bytes.Equal(kind, []byte{pairAgain}) {
		t.Errorf("the next message is %v, want a message that says that others follow", kind)
	}
	p.transmit(p.core.now)
	check("one more chunk", nil, false, 10, 1)
}
