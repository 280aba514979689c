package grpc

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/runtime/transport"
)

// model is what an scheduler must keep to: the messages of each line that are still
// to come, in order.
type model struct {
	t         *rapid.T
	queue     *queue
	scheduler *scheduler
	in        *assemblies
	room      *budget
	left      map[modelLine][]uint32
	numbers   uint32
	sent      int
	ended     int // arrived, or lost with the frame that a stream broke at
}

type modelLine struct {
	group uint64
	class transport.Class
}

const modelMost = 2 << 20 // of large messages together: less than those of all lines may have

func newModel(t *rapid.T) *model {
	m := &model{t: t, room: &budget{}, left: map[modelLine][]uint32{}}
	m.queue = newQueue(&Config{QueueMessages: 5000, QueueBytes: 64 << 20, MessageBytesMax: modelMost})
	m.scheduler = &scheduler{queue: m.queue, count: &transport.Counters{}}
	m.room.give(64 << 20)
	m.connect()
	return m
}

// connect makes a new stream: what had come in chunks is lost.
func (m *model) connect() {
	if m.in != nil {
		m.in.end()
	}
	m.in = newAssemblies(m.room, modelMost, func() { m.t.Fatal("the budget is used up") })
	m.scheduler.begin(modelMost)
}

// send sends a message whose payload says which it is.
func (m *model) send(l modelLine, size int) {
	payload := make([]byte, max(size, 5))
	binary.BigEndian.PutUint32(payload, m.numbers)
	payload[4] = byte(l.class)
	if m.queue.add([]transport.Message{{Group: l.group, Payload: payload, Class: l.class}}).all() == 0 {
		m.left[l] = append(m.left[l], m.numbers)
		m.sent++
	}
	m.numbers++
}

// strike takes out the message that has to be next in its line.
func (m *model) strike(group uint64, payload []byte) {
	l := modelLine{group, transport.Class(payload[4])}
	n := binary.BigEndian.Uint32(payload)
	if len(m.left[l]) == 0 || m.left[l][0] != n {
		m.t.Fatalf("%+v: got %d of %d bytes, of %v", l, n, len(payload), m.left[l])
	}
	m.left[l] = m.left[l][1:]
	m.ended++
}

// frame sends one frame, along a stream that breaks with it or does not. It
// reports whether there was one.
func (m *model) frame(breaks bool) bool {
	if !m.scheduler.load() {
		return false
	}
	f := m.scheduler.frame()
	b := f.buffers.Materialize()
	f.buffers.Free()
	if len(b) > frameBytesMax {
		m.t.Fatalf("a frame of %d bytes", len(b))
	}
	if breaks { // it may have arrived: it is not sent again
		if one := f.chunkOf; one != nil && f.sent == len(one.front().Payload) {
			m.strike(one.front().Group, one.front().Payload)
		}
		for _, r := range f.runs {
			for _, message := range r.messages {
				m.strike(message.Group, message.Payload)
			}
		}
		m.scheduler.done(f, false)
		m.connect()
		return true
	}
	m.scheduler.done(f, true)
	var got told
	if err := readFrame(b, &got); err != nil {
		m.t.Fatal(err)
	}
	for _, message := range got.all {
		m.strike(message.Group, message.Payload)
	}
	for _, c := range got.chunks {
		payload, err := m.in.add(c)
		if err != nil {
			m.t.Fatal(err)
		}
		if payload != nil {
			m.strike(c.group, payload)
		}
	}
	return true
}

// TestOutboxAndBack: whatever is sent arrives in the order of its group and class,
// whatever its size, in frames within the limits. Where the stream breaks, only
// the messages of that frame are lost.
func TestOutboxAndBack(t *testing.T) {
	sizes := []int{5, 5, 5, 5, 100, 3000, aloneBytes - 1, aloneBytes, 300 << 10, wholeBytesMax, wholeBytesMax + 1, 4 * chunkBytes, 9 * chunkBytes / 2}
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 10).Draw(t, "bursts") {
			for range rapid.IntRange(0, 60).Draw(t, "messages") {
				l := modelLine{uint64(rapid.IntRange(0, 2).Draw(t, "group")), transport.Class(rapid.IntRange(0, 2).Draw(t, "class"))}
				size := rapid.SampledFrom(sizes).Draw(t, "size")
				if l.class == transport.Urgent {
					size = min(size, wholeBytesMax) // a larger one is not urgent
				}
				for range rapid.SampledFrom([]int{1, 1, 1, 1, 1, 600}).Draw(t, "times") {
					if m.send(l, size); size > 5 {
						break
					}
				}
			}
			for range rapid.IntRange(0, 40).Draw(t, "frames") {
				if !m.frame(rapid.IntRange(0, 30).Draw(t, "breaks") == 0) {
					break
				}
			}
		}
		for m.frame(false) {
		}
		m.in.end()
		o := m.scheduler
		if m.ended != m.sent || m.queue.count() != 0 || o.bytes != 0 || len(o.open) != 0 || m.room.left.Load() != 64<<20 {
			t.Fatalf("%d of %d arrived; %+v, %+v, %d bytes left for assembling", m.ended, m.sent, m.queue, o, m.room.left.Load())
		}
		if c := o.count.Traffic(); int(c.Sent+c.Dropped) != m.sent {
			t.Fatalf("%d sent, %+v", m.sent, c)
		}
	})
}

// TestDrop: what is dropped is counted and leaves nothing.
func TestDrop(t *testing.T) {
	q := newQueue(&Config{QueueMessages: 100, QueueBytes: 64 << 20, MessageBytesMax: 64 << 20})
	var count transport.Counters
	tooLarge := 0
	o := scheduler{queue: q, count: &count, tooLarge: func(limit int) { tooLarge = limit }}
	o.begin(3 << 20)
	large := transport.Message{Payload: make([]byte, 2<<20)}
	q.add([]transport.Message{number(1), number(2), {Payload: make([]byte, 4<<20)}, large, large})
	if !o.load() {
		t.Fatal("nothing to send")
	}
	if c := count.Traffic(); c.Dropped != 1 || tooLarge != 3<<20 {
		t.Errorf("too large for the peer, which takes %d: %+v", tooLarge, c)
	}
	f := o.frame()
	o.done(f, true) // a chunk
	q.add([]transport.Message{number(3), large})
	count.Dropped.Add(uint64(q.close()))
	o.drop()
	if c := count.Traffic(); c.Dropped != 1+4+2 || q.count() != 0 {
		t.Errorf("%+v, %d wait", c, q.count())
	}
	if n := q.add([]transport.Message{number(4)}); n != (rejected{closed: 1}) || o.load() {
		t.Error("a queue that is closed takes something")
	}
	q.open()
	if n := q.add([]transport.Message{number(4)}); n != (rejected{}) || !o.load() {
		t.Error("a queue that is open takes nothing")
	}
}

// story is what frames hold, one string a frame: the class and group of each message,
// or c and the group of a chunk.
func story(o *scheduler, frames int) (list []string) {
	for range frames {
		if !o.load() {
			return append(list, "nothing")
		}
		f := o.frame()
		text := ""
		if f.chunkOf != nil {
			text = fmt.Sprintf("c%d", f.chunkOf.front().Group)
		}
		for _, r := range f.runs {
			for _, m := range r.messages {
				text += fmt.Sprintf("%.1s%d ", []string{"ordered", "urgent", "bulk"}[m.Class], m.Group)
			}
		}
		f.buffers.Free()
		o.done(f, true)
		list = append(list, strings.TrimSpace(text))
	}
	return list
}

func newOutbox() *scheduler {
	q := newQueue(&Config{QueueMessages: 5000, QueueBytes: 64 << 20, MessageBytesMax: 16 << 20})
	o := &scheduler{queue: q, count: &transport.Counters{}}
	o.begin(16 << 20)
	return o
}

func message(group uint64, size int, c transport.Class) transport.Message {
	return transport.Message{Group: group, Payload: make([]byte, size), Class: c}
}

// TestFrames shows which frames follow each other.
func TestFrames(t *testing.T) {
	const large = wholeBytesMax + 1 // five chunks
	for name, test := range map[string]struct {
		sent []transport.Message
		want string
	}{
		"a small message waits behind a large one of its group": {
			[]transport.Message{message(1, 5, 0), message(1, large, 0), message(1, 5, 0)},
			"o1, c1, c1, c1, c1, c1, o1, nothing",
		},
		"other groups go on in between": {
			[]transport.Message{message(1, large, 0), message(1, 5, 0), message(2, aloneBytes, 0), message(2, aloneBytes, 0), message(3, 5, 0)},
			"c1, o2, c1, o3, c1, o2, c1, c1, o1, nothing",
		},
		"large ones of several groups take turns": {
			[]transport.Message{message(1, large, 0), message(2, large, 0), message(1, 5, 0), message(3, 5, 0)},
			"c1, o3, c2, c1, c2, c1, c2, c1, c2, c1, o1, c2, nothing",
		},
		"urgent ones overtake their own group": {
			[]transport.Message{message(1, large, 0), message(1, 5, 0), message(1, 5, 1), message(2, 5, 1)},
			"u1 u2, c1, c1, c1, c1, c1, o1, nothing",
		},
		"a large one is not urgent": {
			[]transport.Message{message(1, large, 1), message(1, 5, 1)},
			"u1, c1, c1, c1, c1, c1, nothing",
		},
		"bulk ones let others pass": {
			[]transport.Message{message(1, 5, 2), message(1, large, 2), message(1, 5, 2), message(1, large, 0), message(2, 5, 0)},
			"c1, o2, c1, c1, c1, c1, b1, c1, c1, c1, c1, c1, b1, nothing",
		},
		"a class that is not known is ordered": {
			[]transport.Message{message(1, 5, 0), message(1, 5, 9)},
			"o1 o1, nothing",
		},
	} {
		o := newOutbox()
		o.queue.add(test.sent)
		if got := strings.Join(story(o, strings.Count(test.want, ",")+1), ", "); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// TestBulkMessageGivesWay: a large bulk message that has begun does not keep an
// ordered one of its group waiting for longer than its own chunks take.
func TestBulkMessageGivesWay(t *testing.T) {
	o := newOutbox()
	o.queue.add([]transport.Message{message(1, 6*chunkBytes, transport.Bulk)})
	got := story(o, 1)
	o.queue.add([]transport.Message{message(1, 5*chunkBytes, 0), message(2, 5*chunkBytes, 0)})
	for range 20 { // whose frames would go before each chunk
		o.queue.add([]transport.Message{message(3, aloneBytes, 0)})
	}
	got = append(got, story(o, 23)...)
	want := "c1, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c1"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// TestBulkMessagesGiveWay: large bulk messages that have begun and use up what the
// peer puts together at a time do not keep an ordered one waiting either.
func TestBulkMessagesGiveWay(t *testing.T) {
	o := newOutbox()
	o.begin(10 * chunkBytes)
	o.queue.add([]transport.Message{message(1, 5*chunkBytes, transport.Bulk), message(2, 5*chunkBytes, transport.Bulk)})
	got := story(o, 2)
	o.queue.add([]transport.Message{message(3, 5*chunkBytes, 0), message(4, 5*chunkBytes, 0)})
	for range 20 {
		o.queue.add([]transport.Message{message(5, aloneBytes, 0)})
	}
	got = append(got, story(o, 18)...)
	want := "c1, c2, c1, o5, c2, o5, c1, o5, c2, o5, c1, o5, c2, o5, c1, o5, c2, o5, c3, o5"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// TestNoClassStarves: bulk messages get one frame in so many, and ordered ones one
// behind so many urgent ones, however much of the others waits.
func TestNoClassStarves(t *testing.T) {
	o := newOutbox()
	for range 100 {
		o.queue.add([]transport.Message{message(1, aloneBytes, 0), message(1, aloneBytes, 1), message(1, aloneBytes, 2)})
	}
	count := map[string]int{}
	for _, frame := range story(o, 64) {
		count[frame]++
	}
	if count["b1"] != 4 || count["o1"] < 6 || count["u1"] < 50 {
		t.Errorf("%v", count)
	}
}

// TestLanesAreForgotten: a group that has nothing to send costs nothing for ever.
func TestLanesAreForgotten(t *testing.T) {
	o := newOutbox()
	for g := range uint64(5 * groupQueuesMax) {
		o.queue.add([]transport.Message{message(g, 5, 0)})
		if got := story(o, 1); got[0] != fmt.Sprintf("o%d", g) {
			t.Fatal(got)
		}
	}
	if n := len(o.classes[transport.Ordered].queues); n > groupQueuesMax {
		t.Errorf("%d queues", n)
	}
}
