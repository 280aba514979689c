package queue

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/internal/race"
)

// listenerCounts counts the calls of a Listener.
type listenerCounts struct{ touched, filled, overfull int }

func (e *listenerCounts) Touched(*Head) bool { e.touched++; return true }
func (e *listenerCounts) Filled(*Head)       { e.filled++ }
func (e *listenerCounts) Overfull(*Head)     { e.overfull++ }

func newEdge[T any](capacity int) (*Edge[T], *listenerCounts) {
	e, l := new(Edge[T]), new(listenerCounts)
	Init(e, 7, capacity, l)
	return e, l
}

// TestEdgeModel compares an edge with a slice, for all calls of a producer and a
// consumer.
func TestEdgeModel(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		m := &edgeModel{capacity: rapid.IntRange(1, 300).Draw(t, "capacity")}
		m.edge, m.counts = newEdge[int](m.capacity)
		if m.keeps = rapid.Bool().Draw(t, "keeps all"); m.keeps {
			m.edge.Head.KeepAll()
		}
		m.shared = rapid.Bool().Draw(t, "shared")
		t.Repeat(map[string]func(*rapid.T){
			"put":     m.put,
			"offer":   m.offer,
			"publish": m.publish,
			"take":    m.take,
			"await":   m.await,
			"drop":    func(*rapid.T) { m.edge.Head.DropSpares() },
			"rewind":  func(*rapid.T) { m.edge.Head.Rewind() },
			"leave":   m.leave,
			"trim":    m.trim,
			"":        m.check,
		})
	})
}

type edgeModel struct {
	edge     *Edge[int]
	counts   *listenerCounts
	capacity int
	keeps    bool // all messages
	shared   bool // many goroutines are the producer

	next      int   // value of the next put
	waiting   []int // put and not taken
	published int   // of them
	taken     int
	refused   int
	full      bool // since it was filled
	awaited   bool // for room
	fills     int
	touches   int
	dirty     bool
	left      int // number of messages put before Leave
}

func (m *edgeModel) leave(t *rapid.T) {
	if m.published == 0 {
		m.left = m.taken
		if !m.edge.Head.Leave() || m.edge.Head.Attached() {
			t.Fatal("the consumer has not left its segment")
		}
	}
}

func (m *edgeModel) trim(t *rapid.T) {
	if unused := m.edge.Head.Unused(); unused != (m.next == m.left && !m.full) {
		t.Fatalf("Unused returns %v after %d messages, of which %d were put before Leave", unused, m.next, m.left)
	} else if unused {
		m.edge.Head.Trim()
		if n := segmentsOf(m.edge); n > 0 {
			t.Fatalf("an unused queue has room for %d messages", n)
		}
	}
}

func (m *edgeModel) one() {
	if !m.dirty {
		m.dirty = true
		m.touches++
	}
	if len(m.waiting)+1 >= m.capacity && !m.full {
		m.full = true
		m.fills++
	}
	m.waiting = append(m.waiting, m.next)
	m.next++
}

func (m *edgeModel) put(t *rapid.T) {
	for range rapid.IntRange(1, 40).Draw(t, "n") {
		Put(m.edge, m.next)
		m.one()
	}
}

func (m *edgeModel) offer(t *rapid.T) {
	for range rapid.IntRange(1, 10).Draw(t, "n") {
		Offer(m.edge, m.next)
		if len(m.waiting) >= m.capacity && !m.keeps {
			m.refused++
		} else {
			m.one()
		}
	}
}

func (m *edgeModel) publish(t *rapid.T) {
	if m.shared {
		if put := m.edge.Head.PublishShared(); put != (len(m.waiting) > m.published) {
			t.Fatalf("%d messages were put and %d published before: PublishShared returns %v", len(m.waiting), m.published, put)
		}
		m.published = len(m.waiting)
		return
	}
	m.edge.Head.Publish(rapid.Bool().Draw(t, "local"))
	m.published, m.dirty = len(m.waiting), false
}

func (m *edgeModel) take(t *rapid.T) {
	m.edge.Head.SetLocal(rapid.Bool().Draw(t, "local"))
	n := rapid.IntRange(1, 50).Draw(t, "n")
	got := Peek(m.edge, n)
	if len(got) > n || len(got) > m.published || len(got) == 0 && m.published > 0 {
		t.Fatalf("Peek(%d) of %d returns %d", n, m.published, len(got))
	}
	for i, v := range got {
		if v != m.waiting[i] {
			t.Fatalf("got message %d, want %d", v, m.waiting[i])
		}
	}
	k := rapid.IntRange(0, len(got)).Draw(t, "released")
	m.edge.Head.Release(k)
	m.waiting, m.published, m.taken = m.waiting[k:], m.published-k, m.taken+k
	if m.edge.Head.HasRoomForWaiter() != (m.awaited && m.published <= m.capacity/2) {
		t.Fatalf("awaited %v, %d of %d: wrong result of HasRoomForWaiter", m.awaited, m.published, m.capacity)
	}
	if m.awaited && m.published <= m.capacity/2 {
		m.awaited = false
		if !m.edge.Head.HasReported() {
			t.Fatal("HasReported returns false after the consumer has reported room")
		}
	}
}

// await ends the full state as a sender does: it publishes, calls Await, and gets a
// report.
func (m *edgeModel) await(t *rapid.T) {
	if !m.full || m.awaited {
		return
	}
	m.publish(t)
	m.awaited = m.edge.Head.Await()
	if m.awaited != (len(m.waiting) > m.capacity/2) {
		t.Fatalf("Await with %d of %d returns %v", len(m.waiting), m.capacity, m.awaited)
	}
	if !m.awaited {
		m.edge.Head.Drained()
		m.full = false
	}
}

func (m *edgeModel) check(t *rapid.T) {
	e := m.edge
	if e.Head.Len() != m.published || e.Head.Empty() != (m.published == 0) || int(e.Head.Depth()) != len(m.waiting) || e.Head.Full() != m.full {
		t.Fatalf("Len %d, Depth %d, Full %v; want %d, %d, %v", e.Head.Len(), e.Head.Depth(), e.Head.Full(), m.published, len(m.waiting), m.full)
	}
	if int(e.Head.Taken()) != m.taken || int(e.Head.Dropped()) != m.refused || int(e.Head.Sent()) != m.refused+m.taken+m.published {
		t.Fatalf("taken %d, dropped %d, sent %d; want %d, %d, %d",
			e.Head.Taken(), e.Head.Dropped(), e.Head.Sent(), m.taken, m.refused, m.refused+m.taken+m.published)
	}
	if e.Head.Room() != (len(m.waiting) < m.capacity || m.keeps) {
		t.Fatalf("Room with %d of %d returns %v", len(m.waiting), m.capacity, e.Head.Room())
	}
	if m.counts.filled != m.fills || m.counts.touched != m.touches {
		t.Fatalf("Filled was called %d times, Touched %d times; want %d, %d", m.counts.filled, m.counts.touched, m.fills, m.touches)
	}
	if e.Head.Index() != 7 || e.Head.Capacity() != m.capacity {
		t.Fatalf("index %d, capacity %d", e.Head.Index(), e.Head.Capacity())
	}
}

// gate is a listener whose producer pauses.
type gate struct {
	full bool
	room chan struct{}
}

func (g *gate) Touched(*Head) bool { return true }
func (g *gate) Filled(*Head)       { g.full = true }
func (g *gate) Overfull(*Head)     {}

// TestEdgeAcrossGoroutines has a producer that sends bursts of random lengths and
// pauses while the queue is full, and a consumer that takes batches of random lengths.
// It checks the order, that no message and no wake-up is lost, and the capacity.
func TestEdgeAcrossGoroutines(t *testing.T) {
	n := 200_000
	if race.Enabled {
		n /= 10
	}
	for _, capacity := range []int{1, 2, 3, 8, 100, 4096} {
		const burst = 20
		g := &gate{room: make(chan struct{}, 1)}
		e := new(Edge[int])
		Init(e, 0, capacity, g)
		var both sync.WaitGroup
		var left atomic.Bool
		both.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(capacity)))
			for sent := 0; sent < n; {
				if left.Load() && left.Swap(false) && e.Head.Unused() {
					e.Head.Trim()
				}
				for range min(1+r.IntN(burst), n-sent) {
					Put(e, sent)
					sent++
				}
				if d := int(e.Head.Depth()); d > capacity+burst {
					t.Errorf("a queue of %d holds %d", capacity, d)
				}
				e.Head.Publish(false)
				if g.full {
					if e.Head.Await() {
						<-g.room
					}
					e.Head.Drained()
					g.full = false
				}
			}
		})
		both.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(capacity)))
			for next := 0; next < n; {
				batch := Peek(e, 1+r.IntN(2*burst))
				if len(batch) == 0 {
					if r.IntN(4) == 0 {
						e.Head.Leave()
						left.Store(true)
					}
					runtime.Gosched()
					continue
				}
				for _, v := range batch {
					if v != next {
						t.Errorf("got message %d, want %d", v, next)
						return
					}
					next++
				}
				e.Head.Release(len(batch))
				if r.IntN(10) == 0 {
					e.Head.DropSpares()
				}
				if e.Head.HasRoomForWaiter() {
					g.room <- struct{}{}
				}
			}
		})
		both.Wait()
		if e.Head.Len() != 0 || e.Head.Taken() != uint64(n) {
			t.Errorf("%d are left, %d were taken", e.Head.Len(), e.Head.Taken())
		}
	}
}

// TestEdgeReusesItsSegments checks that a steady flow allocates nothing.
func TestEdgeReusesItsSegments(t *testing.T) {
	e, _ := newEdge[[4]uint64](1024)
	flow := func() {
		for range 500 {
			Put(e, [4]uint64{})
		}
		e.Head.Publish(true)
		for e.Head.Len() > 0 {
			e.Head.Release(len(Peek(e, 100)))
		}
	}
	for range 10 {
		flow()
	}
	if allocs := testing.AllocsPerRun(100, flow); allocs > 0 {
		t.Errorf("%v allocations for 500 messages", allocs)
	}
}

// TestEdgeIsTrimmed checks that Leave and Trim free all segments, and that the queue can be used further.
func TestEdgeIsTrimmed(t *testing.T) {
	e, _ := newEdge[[8]uint64](1024)
	for round := range uint64(3) {
		for i := range uint64(1000) {
			Put(e, [8]uint64{round, i})
		}
		e.Head.Publish(true)
		for next := uint64(0); e.Head.Len() > 0; {
			for _, m := range Peek(e, 100) {
				if m[0] != round || m[1] != next {
					t.Fatalf("round %d: got message %d of round %d, want %d", round, m[1], m[0], next)
				}
				next++
				e.Head.Release(1)
			}
		}
		if n := segmentsOf(e); n < 64*segmentsPerCapacity/2 {
			t.Errorf("room for %d messages after a burst", n)
		}
		e.Head.Leave()
		if e.Head.Unused() {
			e.Head.Trim()
		}
		if n := segmentsOf(e); n > 0 {
			t.Errorf("room for %d messages is kept", n)
		}
	}
}

// TestLocalQueueRewinds passes batches through a queue whose ends are on one goroutine. It must keep its first
// segment, and a handled message must not stay in it.
func TestLocalQueueRewinds(t *testing.T) {
	e, _ := newEdge[*int](1024)
	e.Head.SetLocal(true)
	for batch := range 5 {
		for range 100 {
			for range batch {
				Put(e, new(int))
			}
			e.Head.Publish(true)
			for e.Head.Len() > 0 {
				e.Head.Release(len(Peek(e, 10)))
			}
			e.Head.Rewind()
		}
	}
	if n := segmentsOf(e); n > 2*rewindMin {
		t.Errorf("room for %d messages after batches of at most 4", n)
	}
	for range rewindMin - 1 {
		Put(e, new(int))
	}
	e.Head.Publish(true)
	for e.Head.Len() > 0 {
		next := Peek(e, 1)[0]
		e.Head.Rewind() // must do nothing, because there are messages
		if got := Peek(e, 1); len(got) == 0 || got[0] != next {
			t.Fatal("a message is lost")
		}
		e.Head.Release(1)
	}
	e.Head.Rewind()
	for i, m := range e.buf {
		if m != nil {
			t.Errorf("slot %d keeps a message that was handled", i)
		}
	}
}

// TestEdgeAllocatesNothingBeforeItsFirstMessage.
func TestEdgeAllocatesNothingBeforeItsFirstMessage(t *testing.T) {
	e := new(Edge[int])
	l := new(listenerCounts)
	if allocs := testing.AllocsPerRun(100, func() {
		*e = Edge[int]{}
		Init(e, 0, 1024, l)
		e.Head.Publish(false)
		_ = Peek(e, 10)
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestEdgeLetsGoOfMessages checks that a spare segment does not keep alive what its
// former messages point to.
func TestEdgeLetsGoOfMessages(t *testing.T) {
	e, _ := newEdge[*[1 << 16]byte](64)
	for range 1000 {
		Put(e, new([1 << 16]byte))
		e.Head.Publish(true)
		e.Head.Release(len(Peek(e, 1)))
	}
	drained := 0
	for s := range segments(e) {
		if s == e.list.seg { // the consumer is at it
			continue
		}
		drained++
		for i, p := range s.messages.Interface().([]*[1 << 16]byte) {
			if p != nil {
				t.Errorf("a drained segment holds message %d", i)
			}
		}
	}
	if drained == 0 {
		t.Error("there is no spare segment")
	}
}

// TestEdgeMemory checks that a full queue takes its capacity times the size of a
// message, and at most 20 % more, for messages of all sizes. It must not take more
// after it was full, empty and full again.
func TestEdgeMemory(t *testing.T) {
	memoryOf[[1]uint64](t, 1024)
	memoryOf[[1]uint64](t, 16)
	memoryOf[[9]uint64](t, 100)
	memoryOf[[64]uint64](t, 1024)
	memoryOf[[5000]uint64](t, 64)
	memoryOf[[1]byte](t, 100_000)
}

func memoryOf[T any](t *testing.T, capacity int) {
	t.Helper()
	e, _ := newEdge[T](capacity)
	for range 5 {
		for e.Head.Room() {
			Put(e, *new(T))
		}
		e.Head.Publish(true)
		size := int(unsafe.Sizeof(*new(T)))
		got := segmentsOf(e) * size
		if most := capacity * size * 12 / 10; got > max(most, (capacity+2*segmentMin)*size) {
			t.Errorf("%d messages of %d bytes take %d bytes, want at most %d", capacity, size, got, most)
		}
		for e.Head.Len() > 0 {
			e.Head.Release(len(Peek(e, 7)))
		}
	}
}

// segmentsOf counts the messages that the segments of e have room for, including spare
// segments.
func segmentsOf[T any](e *Edge[T]) (n int) {
	for s := range segments(e) {
		n += s.messages.Len()
	}
	return n
}

// segments returns the segments of e, including spare segments.
func segments[T any](e *Edge[T]) map[*segment]bool {
	seen := make(map[*segment]bool)
	for _, list := range []*segment{e.list.first, e.list.seg, e.list.last, e.list.spare.own, e.list.spare.shared.Load()} {
		for s := list; s != nil && !seen[s]; s = s.next {
			seen[s] = true
		}
	}
	return seen
}

// TestExpose makes messages visible on another goroutine while the producer continues
// to put and publish. Visible messages must stay visible and complete.
func TestExpose(t *testing.T) {
	const n = 20_000
	e, _ := newEdge[int](n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			Put(e, i)
			if i%100 == 0 {
				e.Head.Publish(false)
			}
		}
	}()
	go func() {
		for e.Head.Published() < n {
			e.Head.Expose(e.Head.Written())
			runtime.Gosched()
		}
	}()
	for next := 0; next < n; {
		for _, got := range Peek(e, 64) {
			if got != next {
				t.Fatalf("got %d, want %d", got, next)
			}
			next++
			e.Head.Release(1)
		}
		runtime.Gosched()
	}
	<-done
	if e.Head.Expose(n - 1) {
		t.Error("Expose returned true for messages that were visible before")
	}
}

// TestSparesDroppedWhileTheyAreTaken has a consumer that returns a segment and drops it, while the
// producer takes it.
func TestSparesDroppedWhileTheyAreTaken(t *testing.T) {
	const rounds = 200_000
	e, _ := newEdge[int](1024)
	messages, done := reflect.MakeSlice(e.list.messages, 1, 1), make(chan struct{})
	go func() {
		defer close(done)
		for range rounds {
			e.list.spare.put(&segment{messages: messages})
			maybeYield()
			e.Head.DropSpares()
		}
	}()
	for taking := true; taking; {
		select {
		case <-done:
			taking = false
		default:
			if s := e.list.spare.take(1); s != nil && s.next != nil {
				t.Fatal("a taken segment is still in a list")
			}
		}
	}
}
