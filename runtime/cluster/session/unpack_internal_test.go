package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// The parts of a frame's items, to build invalid ones.
func item(kind, number int) []byte { return appendHead(nil, kind, number) }

func enter(slot int) []byte { return item(itemLane, slot*2) }

func announce(slot int, id uint64) []byte {
	return binary.LittleEndian.AppendUint64(item(itemLane, slot*2+itemAnnounce), id)
}

func whole(n int) []byte { return append(item(itemWhole, n), make([]byte, n)...) }

func firstOf(n, size int) []byte {
	return append(binary.AppendUvarint(item(itemFirst, n), uint64(size)), make([]byte, n)...)
}

func next(n int) []byte { return append(item(itemNext, n), make([]byte, n)...) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// begun returns a receiver with lane 50 in slot 0, which has 10 bytes of a message of 30, and
// lane 51 in slot 1.
func begun(t testing.TB) *receiver {
	r := newReceiver()
	if _, err := r.unpack(join(announce(0, 50), firstOf(10, 30), announce(1, 51)), nil); err != nil {
		t.Fatal(err)
	}
	return &r
}

func (r *receiver) state() string {
	s := fmt.Sprintln(r.promised, r.partial)
	for _, l := range r.lanes {
		s += fmt.Sprintln(l.id, l.size, l.received, len(l.buffer))
	}
	return s
}

// TestMalformedItems checks that an invalid item is reported, and that the valid items
// before it have no effect.
func TestMalformedItems(t *testing.T) {
	valid := join(enter(1), whole(5), announce(2, 60), firstOf(3, 4), next(1), enter(0), next(5), announce(3, 61), whole(1))
	for want, bad := range map[string][]byte{
		"slot 7 was not announced":                                            enter(7),
		"slots must be announced in order and below 16384, got 9 after 4":     announce(9, 1),
		"slots must be announced in order and below 16384, got 20000 after 4": announce(20000, 1),
		"slot 0 gets another lane before its message is complete":             announce(0, 1),
		"the announcement of a lane must have 8 bytes, got 3":                 announce(4, 1)[:4],
		"a message must have 1 to 0 bytes, the rest of the frame, got 0":      join(enter(1), whole(0)),
		"a message must have 1 to 2 bytes, the rest of the frame, got 5":      join(enter(1), whole(5)[:3]),
		"lane 50 has an incomplete message, and another one begins":           join(enter(0), whole(5)),
		"lane 50 has an incomplete message, and another one begins ":          join(enter(0), firstOf(5, 9)),
		"lane 51 has no incomplete message, and a fragment continues it":      join(enter(1), next(5)),
		"a fragment must have 1 to 15 bytes, got 16":                          join(enter(0), next(16)),
		"a fragment must have 1 to 0 bytes, got 0":                            join(enter(0), next(0)),
		"a fragment must have 1 to 1 bytes, got 4":                            join(enter(0), next(4)[:2]),
		"the length of a message in fragments must be at most 67141632":       join(enter(1), firstOf(5, MessageBytesMax+1)),
		"incomplete messages must have at most 134283264 bytes, got 67141662": join(enter(1), firstOf(1, MessageBytesMax), announce(4, 1), firstOf(1, MessageBytesMax)),
		"has an invalid head": bytes.Repeat([]byte{0xff}, 11),
		"a message must have 1 to 0 bytes, the rest of the frame, got 461168601": join(enter(1), []byte{0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
	} {
		r := begun(t)
		before := r.state()
		kept := []Delivery{{Lane: 1}}
		out, err := r.unpack(join(valid, bad), kept)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v, want %s", err, want)
		}
		if after := r.state(); after != before || len(out) != 1 {
			t.Errorf("%s: %d messages remain, and the lanes are\n%snow, and were\n%s", want, len(out)-1, after, before)
		}
		out, err = r.unpack(join(valid, enter(0), next(15)), kept)
		if err != nil || len(out) != 5 || r.promised != 0 || r.partial != 0 {
			t.Errorf("%s: after it a valid frame has %d messages: %v", want, len(out)-1, err)
		}
	}
	if _, err := begun(t).unpack(whole(1), nil); err == nil || !strings.Contains(err.Error(), "the first item of a frame must name a lane") {
		t.Errorf("a message without a lane: %v", err)
	}
}

// TestAnnouncedLengthTakesNoMemory begins many messages of the largest length.
func TestAnnouncedLengthTakesNoMemory(t *testing.T) {
	r := newReceiver()
	if _, err := r.unpack(join(announce(0, 1), firstOf(10, MessageBytesMax), announce(1, 2), firstOf(10, MessageBytesMax)), nil); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.lanes {
		if cap(l.buffer) > 20 {
			t.Errorf("a buffer of %d bytes for 10 bytes", cap(l.buffer))
		}
	}
}

// FuzzUnpack unpacks two frames. A frame with an error has no effect, and memory grows only
// with the bytes that have arrived.
func FuzzUnpack(f *testing.F) {
	f.Add(join(announce(0, 50), whole(5), firstOf(10, 30)), join(enter(0), next(20)))
	f.Add(join(announce(0, 50), firstOf(10, 30), announce(1, 51), firstOf(3, 4)), join(enter(1), next(1), whole(2), enter(0), next(21)))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := newReceiver()
		for _, body := range [][]byte{a, b} {
			before := r.state()
			var out []Delivery
			var err error
			allocated.Within(t, 200*(len(a)+len(b)), func() { out, err = r.unpack(body, nil) })
			if err != nil {
				if after := r.state(); after != before || len(out) > 0 || !errors.Is(err, ErrMalformed) {
					t.Fatalf("%v: %d messages, state\n%snow, and was\n%s", err, len(out), after, before)
				}
			}
			promised, partial, room := 0, 0, 0
			for _, l := range r.lanes {
				promised += l.size
				partial += l.received
				room += cap(l.buffer)
				if l.received != len(l.buffer) || l.received > l.size {
					t.Fatalf("a lane has received %d of %d bytes and holds %d", l.received, l.size, len(l.buffer))
				}
			}
			if promised != r.promised || promised > ReassemblyBytes || partial != r.partial || room > 2*(len(a)+len(b)) || len(r.lanes) > len(a)+len(b) {
				t.Fatalf("%d bytes promised, %d received, %d lanes with %d bytes: %+v", promised, partial, len(r.lanes), room, r)
			}
			for _, d := range out {
				if len(d.Message) == 0 || len(d.Message) > len(a)+len(b) {
					t.Fatalf("a message of %d bytes", len(d.Message))
				}
			}
		}
	})
}
