package session_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/internal/race"
)

func TestMessagesArriveInOrder(t *testing.T) {
	p := newPair(t)
	for i := range 1000 {
		p.send(0, uint64(i%7+100), fmt.Append(nil, i))
		p.send(1, uint64(i%3), fmt.Append(nil, i))
	}
	p.settle()
	for end, lanes := range []int{3, 7} {
		if len(p.got[end]) != 1000 {
			t.Fatalf("%d messages, want 1000", len(p.got[end]))
		}
		next := map[uint64]int{}
		for _, d := range p.got[end] {
			if i, ok := next[d.Lane]; !ok {
				next[d.Lane] = int(d.Lane) % 100 % lanes
			} else {
				next[d.Lane] = i + lanes
			}
			if want := fmt.Sprint(next[d.Lane]); string(d.Message) != want {
				t.Fatalf("lane %d got %s, want %s", d.Lane, d.Message, want)
			}
		}
	}
	for p.wait() {
	}
	for i, s := range p.ends {
		if v := s.Stats(); v.Pending != 0 || v.MessagesAcked != 1000 || v.FramesResent != 0 || v.UnackedBytes != 0 {
			t.Errorf("end %d: %+v", i, v)
		}
	}
}

func TestMessageSizes(t *testing.T) {
	p := newPair(t)
	random := rand.NewChaCha8([32]byte{3})
	sizes := []int{
		1, 31, 32, 4095, 4096, session.FragmentBytes - 1, session.FragmentBytes, session.FragmentBytes + 1, 2 * session.FragmentBytes,
		session.FrameBytesMax, session.WindowBytes + 1, session.MessageBytesMax,
	}
	var want [][]byte
	for _, n := range sizes {
		m := make([]byte, n)
		_, _ = random.Read(m) // never fails
		want = append(want, m)
		p.send(0, 20, m)
	}
	p.settle()
	for p.wait() {
	}
	if len(p.got[1]) != len(want) {
		t.Fatalf("%d messages, want %d", len(p.got[1]), len(want))
	}
	for i, d := range p.got[1] {
		if !bytes.Equal(d.Message, want[i]) {
			t.Errorf("message of %d bytes differs", len(want[i]))
		}
	}
	for _, n := range []int{0, session.MessageBytesMax + 1} {
		if err := p.ends[0].Send(20, make([]byte, n)); err == nil {
			t.Errorf("a message of %d bytes was accepted", n)
		}
	}
}

// TestSourceKeepsItsMessages checks that a session takes no more messages from a source than its window has room
// for, and the others when the peer has acknowledged these.
func TestSourceKeepsItsMessages(t *testing.T) {
	p := newPair(t)
	const messages, size = 1000, 16 << 10
	from := new(source)
	for range messages {
		from.messages = append(from.messages, make([]byte, size))
	}
	p.ends[0].Ready(100, from)
	var sent [][]byte
	for f := p.ends[0].Frame(p.now); f != nil; f = p.ends[0].Frame(p.now) {
		sent = append(sent, f)
	}
	v := p.ends[0].Stats()
	if taken := messages - len(from.messages); taken*size > session.WindowBytes+session.FrameBytesMax || v.Pending != uint64(taken) || !p.ends[0].Waits() {
		t.Errorf("%d messages were taken, and the session has %+v", taken, v)
	}
	for _, f := range sent {
		if p.got[1], _ = p.ends[1].Receive(p.now, f, p.got[1]); len(p.got[1]) == 0 {
			t.Fatal("a frame has no message")
		}
	}
	p.settle()
	if v := p.ends[0].Stats(); len(p.got[1]) != messages || v.MessagesQueuedTotal != messages || p.ends[0].Waits() {
		t.Errorf("%d messages arrived, want %d; the session has %+v", len(p.got[1]), messages, v)
	}
}

// TestFramesAreReused checks that small messages cost no allocation if the transport copies
// frames.
func TestFramesAreReused(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, size := range []int{64, 8192} {
		p := newPair(t, func(c *session.Config) { c.ReuseFrames = true })
		m := make([]byte, size)
		round := func() {
			for range 20 {
				p.send(0, 100, m)
				p.got[1] = p.got[1][:0]
				for p.pass(0) {
				}
			}
			for range 300 {
				p.send(0, 100, m)
			}
			p.got[1] = p.got[1][:0]
			for p.pass(0) {
			}
			p.now += 10_000_000 // the acknowledgement is due
			for p.pass(1) {
			}
		}
		for range 20 {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n > 15 { // the acknowledgements
			t.Errorf("%v allocations for 320 messages of %d bytes", n, size)
		}
	}
}

// TestBytesOnTheWire sends 64-byte messages one by one in one lane. Frames add little to them.
func TestBytesOnTheWire(t *testing.T) {
	p := newPair(t)
	before := p.ends[0].Stats().BytesSent + p.ends[1].Stats().BytesSent
	const n, size = 100_000, 64
	for range n {
		p.send(0, 100, make([]byte, size))
	}
	p.settle()
	sent := p.ends[0].Stats().BytesSent + p.ends[1].Stats().BytesSent - before
	if ratio := float64(sent) / (n * size); ratio > 1.04 {
		t.Errorf("%d messages of %d bytes took %d bytes, %.3f times their length", n, size, sent, ratio)
	}
}
