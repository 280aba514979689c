package session_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/cluster/session"
)

// TestMalformedFrames checks that an invalid frame is reported and counted, and that the
// session goes on.
func TestMalformedFrames(t *testing.T) {
	ids := append(binary.LittleEndian.AppendUint64(nil, 2), 1, 0, 0, 0, 0, 0, 0, 0)
	frame := func(kind byte, rest ...byte) []byte { return append(append([]byte{kind}, ids...), rest...) }
	hello := open(t, config("n2", "n1", 9)).Frame(0)
	for _, c := range []struct {
		frame []byte
		want  string
	}{
		{nil, "a frame must have 1 to 65536 bytes, got 0"},
		{make([]byte, 65537), "a frame must have 1 to 65536 bytes, got 65537"},
		{[]byte{0}, "the kind of a frame must be 1 to 5, got 0"},
		{[]byte{6}, "the kind of a frame must be 1 to 5, got 6"},
		{[]byte{0x83}, "the kind of a frame must be 1 to 5, got 131"},
		{[]byte{kindData}, "the header of kind 4 must be complete, got 1 bytes"},
		{frame(kindData), "the header of kind 4 must be complete, got 17 bytes"},
		{frame(kindData, 0, 1, 0), "the number of a frame must not be 0"},
		{frame(kindData, 1, 1), "data frame 1 must hold a message"},
		{frame(kindData, 1, 1, 0), "the first item of a frame must name a lane"},
		{frame(kindAck, 5, 0, 0, 0), "frame 5 is acknowledged, but only 0 were sent"},
		{frame(kindAck, 0, 9, 0, 0), "stamp 9 is acknowledged, but the last one is 0"},
		{frame(kindAck, 0, 0, 0, 0, 1), "an acknowledgement must end after its bitmap, got 1 more bytes"},
		{frame(kindAck, 0, 0, 0, 200, 1), "the header of kind 3 must be complete"},
		{frame(kindAck, bytes.Repeat([]byte{0xff}, 20)...), "the header of kind 3 must be complete"},
		{hello[:20], "a hello must be complete, got 20 bytes"},
		{append(bytes.Clone(hello), 1), "a hello must end after its names, got 1 more bytes"},
		{[]byte{2, 1}, "a refusal must be complete and end after its text, got 2 bytes"},
	} {
		p := newPair(t)
		before := p.ends[0].Stats()
		got, err := p.ends[0].Receive(p.now, c.frame, nil)
		if !errors.Is(err, session.ErrMalformed) || !strings.Contains(err.Error(), c.want) || len(got) > 0 {
			t.Errorf("%v and %d messages, want %s", err, len(got), c.want)
		}
		if after := p.ends[0].Stats(); after.Malformed != before.Malformed+1 {
			t.Errorf("%s: the frame was not counted", c.want)
		}
		p.send(1, 100, []byte("a"))
		p.send(0, 100, []byte("b"))
		p.settle()
		if len(p.got[0]) != 1 || len(p.got[1]) != 1 {
			t.Errorf("%s: the session does not go on", c.want)
		}
	}
}

// TestDamagedFrameIsRepeated damages a frame. It counts as lost.
func TestDamagedFrameIsRepeated(t *testing.T) {
	p := newPair(t)
	p.send(0, 100, []byte("one"))
	f := bytes.Clone(p.ends[0].Frame(p.now))
	if _, err := p.ends[1].Receive(p.now, f[:len(f)-1], nil); !errors.Is(err, session.ErrMalformed) {
		t.Fatal(err)
	}
	for p.wait() {
	}
	if len(p.got[1]) != 1 || string(p.got[1][0].Message) != "one" {
		t.Errorf("messages %v, want one", p.got[1])
	}
}

// TestFloodAhead sends frames after a missing one, each as large as possible. The receiver
// keeps a window of them.
func TestFloodAhead(t *testing.T) {
	p := newPair(t)
	for n := range uint64(5000) {
		f := append([]byte{kindData}, append(binary.LittleEndian.AppendUint64(nil, 1), 2, 0, 0, 0, 0, 0, 0, 0)...)
		f = binary.AppendUvarint(binary.AppendUvarint(f, n+2), n+2)
		f = append(f, make([]byte, session.FrameBytesMax-len(f))...)
		if _, err := p.ends[1].Receive(p.now, f, nil); err != nil {
			t.Fatal(err)
		}
		v := p.ends[1].Stats()
		if v.AheadBytes > session.WindowBytes+session.FrameBytesMax || v.AheadFrames > session.WindowFrames {
			t.Fatalf("%d frames with %d bytes are kept", v.AheadFrames, v.AheadBytes)
		}
	}
	if v := p.ends[1].Stats(); v.Overflows == 0 || v.Overflows+uint64(v.AheadFrames) != 5000 {
		t.Errorf("%d frames are kept and %d counted as dropped, want 5000", v.AheadFrames, v.Overflows)
	}
}

// FuzzReceive passes frames to a session that has a peer, with the boot ids of both. It
// must not panic, and its memory and its answers are limited.
func FuzzReceive(f *testing.F) {
	p := newPair(f)
	for i := range 5 {
		p.send(0, uint64(i), make([]byte, 100*i+1))
		p.send(1, uint64(i), make([]byte, 1))
	}
	for end := range 2 {
		for g := p.ends[end].Frame(0); g != nil; g = p.ends[end].Frame(0) {
			f.Add(g, g[:len(g)/2])
		}
	}
	f.Add(open(f, config("n1", "n2", 1)).Frame(0), []byte{2})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p := newPair(t)
		s := p.ends[1]
		for i := range 10 {
			p.send(1, uint64(i), make([]byte, 1000))
		}
		s.Frame(0)
		now := time.Duration(0)
		var got []session.Delivery
		for range 2 {
			for _, frame := range [][]byte{a, b} {
				if len(frame) > 17 && frame[0] > 2 {
					copy(frame[1:], []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0})
				}
				now += time.Millisecond
				var err error
				allocated.Within(t, 100*(len(a)+len(b)), func() { got, err = s.Receive(now, frame, got[:0]) })
				if err != nil && !errors.Is(err, session.ErrMalformed) {
					t.Fatal(err)
				}
				for _, d := range got {
					if len(d.Message) == 0 || len(d.Message) > len(a)+len(b) {
						t.Fatalf("a message of %d bytes", len(d.Message))
					}
				}
				s.Events()
				n := 0
				for s.Frame(now) != nil {
					if n++; n > 100 {
						t.Fatal("more than 100 frames")
					}
				}
				s.Next()
			}
		}
		if v := s.Stats(); v.MessagesQueuedTotal != v.MessagesAcked+v.Forgotten+v.Pending {
			t.Fatalf("messages are missing: %+v", v)
		}
	})
}
