package session_test

import (
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/session"
)

// TestSmallMessageBesideLargeOnes sends small messages while several lanes send messages of
// 64 MiB. A small message waits for at most one fragment.
func TestSmallMessageBesideLargeOnes(t *testing.T) {
	for _, large := range []int{1, 2} {
		p := newPair(t)
		for i := range large {
			p.send(0, uint64(100+i), make([]byte, session.MessageBytesMax))
		}
		for range 7 {
			p.pass(0)
		}
		for i := range 200 {
			lane := uint64(200 + i%3)
			p.send(0, lane, make([]byte, 64))
			p.got[1] = p.got[1][:0]
			p.pass(0)
			if len(p.got[1]) != 1 || p.got[1][0].Lane != lane {
				t.Fatalf("%d large messages: the next frame has %d complete messages, want the small one", large, len(p.got[1]))
			}
			p.pass(1)
		}
	}
}

// TestLargeMessagesShare checks that lanes with large messages get equal parts of the
// connection, and that a lane with many small ones gets the same.
func TestLargeMessagesShare(t *testing.T) {
	p := newPair(t)
	const lanes, size = 4, 8 << 20
	for i := range lanes - 1 {
		p.send(0, uint64(100+i), make([]byte, size))
	}
	for range size / 1024 {
		p.send(0, 200, make([]byte, 1024))
	}
	var done []uint64
	bytes := 0
	for p.pass(0) {
		p.pass(1)
		for _, d := range p.got[1] {
			if bytes += len(d.Message); d.Lane < 200 {
				done = append(done, d.Lane)
			} else if len(done) == 0 {
				done = append(done, 0) // the small messages began first
			}
		}
		p.got[1] = p.got[1][:0]
		if len(done) == 2 {
			break
		}
	}
	// When the first large message is complete, each lane has sent about the same: the
	// rest of the others is a few fragments.
	if rest := lanes*size - bytes - p.ends[1].Stats().PartialBytes; rest > lanes*4*session.FragmentBytes {
		t.Errorf("%d bytes of other lanes are queued when the first large message is complete", rest)
	}
}

// TestControlGoesFirst queues much data and then control messages.
func TestControlGoesFirst(t *testing.T) {
	p := newPair(t)
	for range 1000 {
		p.send(0, 100, make([]byte, 16<<10))
	}
	p.pass(0)
	p.got[1] = nil
	p.send(0, 0, []byte("first"))
	p.send(0, session.ControlLanes-1, []byte("second"))
	p.pass(0)
	if len(p.got[1]) < 3 || p.got[1][0].Lane != 0 || p.got[1][1].Lane != session.ControlLanes-1 || p.got[1][2].Lane != 100 {
		t.Errorf("the next frame has %d messages, want both control messages before data", len(p.got[1]))
	}
	// A flood of control messages leaves a part of each frame to data.
	for range 1000 {
		p.send(0, 1, make([]byte, 1000))
	}
	p.got[1] = nil
	p.pass(0)
	data := 0
	for _, d := range p.got[1] {
		if d.Lane == 100 {
			data++
		}
	}
	if data == 0 {
		t.Error("control messages fill a frame while data is queued")
	}
}

// TestSparseLanesShare sends messages of ever new lanes, more than the connection can
// carry. A lane with a backlog still gets half.
func TestSparseLanesShare(t *testing.T) {
	p := newPair(t)
	p.send(0, 100, make([]byte, session.MessageBytesMax))
	lane := uint64(1000)
	for range 200 {
		for range 64 {
			lane++
			p.send(0, lane, make([]byte, 1000))
		}
		p.pass(0)
		p.pass(1)
	}
	v := p.ends[1].Stats()
	if v.PartialBytes < 4<<20 {
		t.Errorf("a large message got %d of %d bytes", v.PartialBytes, v.BytesReceived)
	}
}

// TestPartialMessagesAreLimited sends five of the largest messages at the same time. The
// receiver never has parts of more than two.
func TestPartialMessagesAreLimited(t *testing.T) {
	speed.NoRace(t)
	p := newPair(t)
	large := make([]byte, session.MessageBytesMax)
	for i := range 5 {
		p.send(0, uint64(100+i), large)
		p.send(0, uint64(100+i), []byte("last"))
	}
	most, done := 0, 0
	for p.pass(0) {
		p.pass(1)
		most = max(most, p.ends[1].Stats().PartialBytes)
		done += len(p.got[1])
		clear(p.got[1])
		p.got[1] = p.got[1][:0]
	}
	if most > session.ReassemblyBytes || done != 10 {
		t.Errorf("parts of %d bytes, limit %d; %d messages, want 10", most, session.ReassemblyBytes, done)
	}
}

// TestMoreLanesThanSlots uses lanes in two rounds. The second round announces them again.
func TestMoreLanesThanSlots(t *testing.T) {
	p := newPair(t)
	p.send(0, 1, make([]byte, 1<<20)) // the lane keeps its slot while its message is incomplete
	p.pass(0)
	const lanes = session.SlotsMax + session.SlotsMax/2
	for range 2 {
		for i := range uint64(lanes) {
			p.send(0, 100+i, []byte{byte(i)})
		}
	}
	p.settle()
	for p.wait() {
	}
	if len(p.got[1]) != 2*lanes+1 {
		t.Errorf("%d messages, want %d", len(p.got[1]), 2*lanes+1)
	}
	for _, d := range p.got[1] {
		if d.Lane > 1 && d.Message[0] != byte(d.Lane-100) {
			t.Fatalf("lane %d got the message of another lane", d.Lane)
		}
	}
	if n := p.ends[0].Stats().Lanes; n > session.SlotsMax {
		t.Errorf("the sender keeps %d lanes, want at most %d", n, session.SlotsMax)
	}
}
