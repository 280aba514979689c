package grpc

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

// model is a model of the scheduler: the remaining messages of each group and class, in
// order.
type model struct {
	t         *rapid.T
	queue     *queue
	scheduler *scheduler
	in        *assemblies
	room      *budget
	left      map[modelQueue][]uint32
	numbers   uint32
	sent      int
	ended     int // arrived, or lost with the frame of a broken stream
}

type modelQueue struct {
	group uint64
	class transport.Class
}

const modelLimit = 2 << 20 // limit of large messages together, less than all groups together may queue

func newModel(t *rapid.T) *model {
	m := &model{t: t, room: &budget{}, left: map[modelQueue][]uint32{}}
	m.queue = newQueue(&Config{QueueMessages: 5000, QueueBytes: 64 << 20, MessageBytesMax: modelLimit})
	m.scheduler = &scheduler{queue: m.queue, count: &transport.Counters{}}
	m.room.give(64 << 20)
	m.connect()
	return m
}

// connect opens a new stream. The chunks received so far are lost.
func (m *model) connect() {
	if m.in != nil {
		m.in.end()
	}
	m.in = newAssemblies(m.room, modelLimit, func() { m.t.Fatal("the budget is used up") })
	m.scheduler.begin(modelLimit)
}

// send sends a message with a number in its payload.
func (m *model) send(l modelQueue, size int) {
	payload := make([]byte, max(size, 5))
	binary.BigEndian.PutUint32(payload, m.numbers)
	payload[4] = byte(l.class)
	if m.queue.add([]transport.Message{{Group: l.group, Payload: payload, Class: l.class}}).all() == 0 {
		m.left[l] = append(m.left[l], m.numbers)
		m.sent++
	}
	m.numbers++
}

// remove removes a received message, which must be the next one of its group and class.
func (m *model) remove(group uint64, payload []byte) {
	l := modelQueue{group, transport.Class(payload[4])}
	n := binary.BigEndian.Uint32(payload)
	if len(m.left[l]) == 0 || m.left[l][0] != n {
		m.t.Fatalf("%+v: got message %d of %d bytes, want the first of %v", l, n, len(payload), m.left[l])
	}
	m.left[l] = m.left[l][1:]
	m.ended++
}

// frame sends one frame, on a stream that may break with it. It reports whether there
// was a frame.
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
	if breaks { // the message may have arrived, so it is not sent again
		if one := f.chunkOf; one != nil && f.sent == len(one.front().Payload) {
			m.remove(one.front().Group, one.front().Payload)
		}
		for _, r := range f.runs {
			for _, message := range r.messages {
				m.remove(message.Group, message.Payload)
			}
		}
		m.scheduler.done(f, false)
		m.connect()
		return true
	}
	m.scheduler.done(f, true)
	var got recorder
	if err := readFrame(b, &got); err != nil {
		m.t.Fatal(err)
	}
	for _, message := range got.all {
		m.remove(message.Group, message.Payload)
	}
	for _, c := range got.chunks {
		payload, err := m.in.add(c)
		if err != nil {
			m.t.Fatal(err)
		}
		if payload != nil {
			m.remove(c.group, payload)
		}
	}
	return true
}

// TestSchedulerModel: messages of all sizes arrive in the order of their group and
// class, in frames within the limits. If the stream breaks, only the messages of that
// frame are lost.
func TestSchedulerModel(t *testing.T) {
	t.Parallel() // it computes while others wait
	speed.NoRace(t)
	speed.Checks(t, 15, 100, 1000)
	sizes := []int{5, 5, 5, 5, 100, 3000, aloneBytes - 1, aloneBytes, 300 << 10, wholeBytesMax, wholeBytesMax + 1, 4 * chunkBytes, 9 * chunkBytes / 2}
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 10).Draw(t, "bursts") {
			for range rapid.IntRange(0, 60).Draw(t, "messages") {
				l := modelQueue{uint64(rapid.IntRange(0, 2).Draw(t, "group")), transport.Class(rapid.IntRange(0, 2).Draw(t, "class"))}
				size := rapid.SampledFrom(sizes).Draw(t, "size")
				if l.class == transport.Urgent {
					size = min(size, wholeBytesMax) // a larger one is not treated as urgent
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
			t.Fatalf("%d of %d messages arrived; %+v, %+v, %d bytes of the budget are left", m.ended, m.sent, m.queue, o, m.room.left.Load())
		}
		if c := o.count.Traffic(); int(c.Sent+c.Dropped) != m.sent {
			t.Fatalf("%d sent, %+v", m.sent, c)
		}
	})
}

// TestDrop: dropped messages are counted and release their room.
func TestDrop(t *testing.T) {
	q := newQueue(&Config{QueueMessages: 100, QueueBytes: 64 << 20, MessageBytesMax: 64 << 20})
	var count transport.Counters
	tooLarge := 0
	o := scheduler{queue: q, count: &count, tooLarge: func(limit int) { tooLarge = limit }}
	o.begin(3 << 20)
	large := transport.Message{Payload: make([]byte, 2<<20)}
	q.add([]transport.Message{number(1), number(2), {Payload: make([]byte, 4<<20)}, large, large})
	if !o.load() {
		t.Fatal("there is nothing to send")
	}
	if c := count.Traffic(); c.Dropped != 1 || tooLarge != 3<<20 {
		t.Errorf("a message is too large for the peer, which accepts %d bytes: %+v", tooLarge, c)
	}
	f := o.frame()
	o.done(f, true) // a chunk
	q.add([]transport.Message{number(3), large})
	count.Dropped.Add(uint64(q.close()))
	o.drop()
	if c := count.Traffic(); c.Dropped != 1+4+2 || q.count() != 0 {
		t.Errorf("%+v, %d messages queued", c, q.count())
	}
	if n := q.add([]transport.Message{number(4)}); n != (rejected{closed: 1}) || o.load() {
		t.Error("a closed queue accepted a message")
	}
	q.open()
	if n := q.add([]transport.Message{number(4)}); n != (rejected{}) || !o.load() {
		t.Error("an open queue rejected a message")
	}
}

// describeFrames describes frames, one string for each: the class and group of each message, or
// c and the group of a chunk.
func describeFrames(o *scheduler, frames int) (list []string) {
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

func newScheduler() *scheduler {
	q := newQueue(&Config{QueueMessages: 5000, QueueBytes: 64 << 20, MessageBytesMax: 16 << 20})
	o := &scheduler{queue: q, count: &transport.Counters{}}
	o.begin(16 << 20)
	return o
}

func message(group uint64, size int, c transport.Class) transport.Message {
	return transport.Message{Group: group, Payload: make([]byte, size), Class: c}
}

// TestFrames shows the order of frames.
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
		"large messages of several groups take turns": {
			[]transport.Message{message(1, large, 0), message(2, large, 0), message(1, 5, 0), message(3, 5, 0)},
			"c1, o3, c2, c1, c2, c1, c2, c1, c2, c1, o1, c2, nothing",
		},
		"urgent messages overtake their own group": {
			[]transport.Message{message(1, large, 0), message(1, 5, 0), message(1, 5, 1), message(2, 5, 1)},
			"u1 u2, c1, c1, c1, c1, c1, o1, nothing",
		},
		"a large message is not urgent": {
			[]transport.Message{message(1, large, 1), message(1, 5, 1)},
			"u1, c1, c1, c1, c1, c1, nothing",
		},
		"others overtake bulk messages": {
			[]transport.Message{message(1, 5, 2), message(1, large, 2), message(1, 5, 2), message(1, large, 0), message(2, 5, 0)},
			"c1, o2, c1, c1, c1, c1, b1, c1, c1, c1, c1, c1, b1, nothing",
		},
		"an unknown class is ordered": {
			[]transport.Message{message(1, 5, 0), message(1, 5, 9)},
			"o1 o1, nothing",
		},
	} {
		o := newScheduler()
		o.queue.add(test.sent)
		if got := strings.Join(describeFrames(o, strings.Count(test.want, ",")+1), ", "); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// TestBulkMessageGivesWay: an ordered message waits for a large bulk message of its
// group that has started, but only as long as the bulk message's own chunks take.
func TestBulkMessageGivesWay(t *testing.T) {
	o := newScheduler()
	o.queue.add([]transport.Message{message(1, 6*chunkBytes, transport.Bulk)})
	got := describeFrames(o, 1)
	o.queue.add([]transport.Message{message(1, 5*chunkBytes, 0), message(2, 5*chunkBytes, 0)})
	for range 20 { // their frames would go before each chunk
		o.queue.add([]transport.Message{message(3, aloneBytes, 0)})
	}
	got = append(got, describeFrames(o, 23)...)
	want := "c1, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c2, o3, c1, o3, c1"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// TestBulkMessagesGiveWay: the same if large bulk messages that have started use up the
// limit for messages in chunks.
func TestBulkMessagesGiveWay(t *testing.T) {
	o := newScheduler()
	o.begin(10 * chunkBytes)
	o.queue.add([]transport.Message{message(1, 5*chunkBytes, transport.Bulk), message(2, 5*chunkBytes, transport.Bulk)})
	got := describeFrames(o, 2)
	o.queue.add([]transport.Message{message(3, 5*chunkBytes, 0), message(4, 5*chunkBytes, 0)})
	for range 20 {
		o.queue.add([]transport.Message{message(5, aloneBytes, 0)})
	}
	got = append(got, describeFrames(o, 18)...)
	want := "c1, c2, c1, o5, c2, o5, c1, o5, c2, o5, c1, o5, c2, o5, c1, o5, c2, o5, c3, o5"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// TestNoClassStarves: bulk messages get one frame in bulkEvery, and ordered messages get
// one frame after urgentInRow urgent ones, however many others are queued.
func TestNoClassStarves(t *testing.T) {
	o := newScheduler()
	for range 100 {
		o.queue.add([]transport.Message{message(1, aloneBytes, 0), message(1, aloneBytes, 1), message(1, aloneBytes, 2)})
	}
	count := map[string]int{}
	for _, frame := range describeFrames(o, 64) {
		count[frame]++
	}
	if count["b1"] != 4 || count["o1"] < 6 || count["u1"] < 50 {
		t.Errorf("%v", count)
	}
}

// TestIdleQueuesAreRemoved: idle groups do not use memory forever.
func TestIdleQueuesAreRemoved(t *testing.T) {
	o := newScheduler()
	for g := range uint64(5 * groupQueuesMax) {
		o.queue.add([]transport.Message{message(g, 5, 0)})
		if got := describeFrames(o, 1); got[0] != fmt.Sprintf("o%d", g) {
			t.Fatal(got)
		}
	}
	if n := len(o.classes[transport.Ordered].queues); n > groupQueuesMax {
		t.Errorf("%d queues", n)
	}
}
