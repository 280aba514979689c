package queue

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/internal/race"
)

// TestLockFreeModel compares a queue with a slice, across many blocks.
func TestLockFreeModel(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		var q LockFree[int]
		var held []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 700).Draw(t, "n") {
					q.Push(next)
					held = append(held, next)
					next++
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 700).Draw(t, "n") {
					v, ok := q.Pop()
					if ok != (len(held) > 0) || ok && v != held[0] {
						t.Fatalf("Pop with %d held: %d, %v", len(held), v, ok)
					}
					if ok {
						held = held[1:]
					}
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != len(held) {
					t.Fatalf("Len %d; holds %d", q.Len(), len(held))
				}
			},
		})
	})
}

// TestLockFreeAcrossGoroutines checks that each value is popped once, and that each
// consumer gets the values of one producer in order.
func TestLockFreeAcrossGoroutines(t *testing.T) {
	for _, sides := range [][2]int{{1, 1}, {1, 4}, {4, 1}, {2, 2}, {8, 8}} {
		t.Run(fmt.Sprint(sides), func(t *testing.T) { lockFreeAcross(t, sides[0], sides[1]) })
	}
}

func lockFreeAcross(t *testing.T, producers, consumers int) {
	each := speed.Pick(t, 5_000, 20_000, 100_000)
	var q LockFree[item]
	var all sync.WaitGroup
	var pushing atomic.Int32
	pushing.Store(int32(producers))
	for p := range producers {
		all.Go(func() {
			defer pushing.Add(-1)
			for seq := range each {
				q.Push(item{p, seq})
			}
		})
	}
	seen := make([][]item, consumers)
	for c := range consumers {
		all.Go(func() {
			for {
				last := pushing.Load() == 0 // read before Pop: if Pop then finds nothing, the queue is empty
				if v, ok := q.Pop(); ok {
					seen[c] = append(seen[c], v)
				} else if last {
					return
				} else if n := q.Len(); n < 0 || n > producers*each {
					t.Errorf("Len is %d", n)
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	count := make(map[item]int)
	for _, items := range seen {
		last := make(map[int]int)
		for _, v := range items {
			if count[v]++; count[v] > 1 {
				t.Fatalf("%v comes twice", v)
			}
			if before, ok := last[v.producer]; ok && v.seq <= before {
				t.Fatalf("%v after %d", v, before)
			}
			last[v.producer] = v.seq
		}
	}
	if len(count) != producers*each || q.Len() != 0 {
		t.Errorf("%d of %d values were popped, %d are left", len(count), producers*each, q.Len())
	}
}

// TestAHeldUpProducerLosesNothing runs step by step the case in which a simpler queue
// loses a message (docs/explanation/queues.md): a producer stops between claiming its
// place and filling it, others push and pop past it, and then it continues.
func TestAHeldUpProducerLosesNothing(t *testing.T) {
	var q LockFree[string]
	q.Push("first")
	late := q.tail.Load().claim(&q.tail.Load().pushed)
	q.Push("second")
	if q.Len() != 3 {
		t.Errorf("Len is %d with two values and a claimed place", q.Len())
	}
	for _, want := range []string{"first", "second"} {
		if v, ok := q.Pop(); v != want || !ok {
			t.Fatalf("popped %q, %v want %q: a stopped producer blocks a consumer", v, ok, want)
		}
	}
	if _, ok := q.Pop(); ok {
		t.Fatal("popped a value that was not pushed")
	}
	if late.fill("late") {
		t.Fatal("the late producer filled a place that no consumer looks at: its message is lost")
	}
	q.Push("late")
	if v, ok := q.Pop(); v != "late" || !ok {
		t.Errorf("popped %q, %v, want the late message", v, ok)
	}
	if late.value != "" || late.state.Load() != done {
		t.Errorf("the place holds %q in state %d after both have left it", late.value, late.state.Load())
	}
}

// TestAHeldUpConsumerHoldsUpNobody checks that a stopped consumer does not block later
// ones, and gets its own value.
func TestAHeldUpConsumerHoldsUpNobody(t *testing.T) {
	var q LockFree[int]
	q.Push(-1)
	slow := q.head.Load().claim(&q.head.Load().popped)
	for i := range 10_000 {
		q.Push(i)
		if v, ok := q.Pop(); v != i || !ok {
			t.Fatalf("popped %d, %v instead of %d", v, ok, i)
		}
	}
	if v, ok := slow.take(); v != -1 || !ok {
		t.Errorf("the stopped consumer took %d, %v", v, ok)
	}
	if _, ok := q.Pop(); ok || q.Len() != 0 {
		t.Error("a value is left")
	}
}

// TestPlacesInUseAreNotRecycled checks that a block in which a goroutine has stopped is
// not used again.
func TestPlacesInUseAreNotRecycled(t *testing.T) {
	var q LockFree[int]
	for range 2 * segmentMax { // until blocks have their full length
		q.Push(0)
		q.Pop()
	}
	b := q.tail.Load()
	late := b.claim(&b.pushed)
	if late == nil {
		t.Fatal("the block is at its end; choose another number of pushes")
	}
	for i := range 10 * segmentMax {
		q.Push(i)
		if v, ok := q.Pop(); v != i || !ok {
			t.Fatalf("popped %d, %v instead of %d", v, ok, i)
		}
		if now := q.tail.Load(); now != b && &now.places[0] == &b.places[0] {
			t.Fatal("places were used again while a producer uses one of them")
		}
	}
	if late.fill(-1) {
		t.Error("an abandoned place accepted a value")
	}
}

// TestLockFreeOfAllSizes has messages of size zero up to messages that fill a block.
func TestLockFreeOfAllSizes(t *testing.T) {
	lockFreeOf[struct{}](t)
	lockFreeOf[byte](t)
	lockFreeOf[[3]uint32](t)
	lockFreeOf[[5000]uint64](t)
}

func lockFreeOf[T any](t *testing.T) {
	t.Helper()
	var q LockFree[T]
	for round := range 3 {
		for range 1000 {
			q.Push(*new(T))
		}
		for n := 1000; n > 0; n-- {
			if _, ok := q.Pop(); !ok || q.Len() != n-1 {
				t.Fatalf("round %d: popped %v of %d, %d are left", round, ok, n, q.Len())
			}
		}
		if _, ok := q.Pop(); ok {
			t.Fatalf("round %d: popped from an empty queue", round)
		}
	}
}

// TestLockFreeLetsGo checks that popped values are not reachable from the queue, in the
// middle of a block, at its end, and in a spare block, and that the other values are.
func TestLockFreeLetsGo(t *testing.T) {
	const n, left = 5000, 10
	var q LockFree[*[64]int]
	values := make([]weak.Pointer[[64]int], n)
	for i := range values {
		v := new([64]int)
		values[i] = weak.Make(v)
		q.Push(v)
	}
	for range n - left {
		q.Pop()
	}
	runtime.GC()
	for i, v := range values {
		if held := v.Value() != nil; held != (i >= n-left) {
			t.Fatalf("value %d, of which %d were popped, is held: %v", i, n-left, held)
		}
	}
	runtime.KeepAlive(&q)
}

// TestLockFreeGivesMemoryBack checks that the heap has its former size after all values
// were popped.
func TestLockFreeGivesMemoryBack(t *testing.T) {
	speed.NoRace(t)
	const most = 256 << 10 // bytes: some blocks, and what the tests themselves use
	n := speed.Pick(t, 200_000, 1_000_000, 1_000_000)
	q := new(LockFree[uint64])
	before := heap()
	for range 3 {
		for i := range n {
			q.Push(uint64(i))
		}
		if full := heap() - before; full < int64(n)*8 {
			t.Fatalf("%d values take %d bytes", n, full)
		}
		for range n {
			q.Pop()
		}
		if after := heap(); after > before+most {
			t.Errorf("%d bytes before, %d after the drain", before, after)
		}
	}
	runtime.KeepAlive(q)
}

// heap is the size of the live heap. The garbage collector keeps the contents of a
// sync.Pool for one more collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLockFreeAllocatesLittle checks that a steady flow takes its places from spare
// blocks. Only the block itself, some hundred bytes for 512 messages, is allocated each
// time.
func TestLockFreeAllocatesLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool forgets on purpose")
	}
	var q LockFree[uint64]
	const n = 100 * segmentMax
	flow := func() {
		for i := range n {
			q.Push(uint64(i))
			q.Pop()
		}
	}
	flow()
	if allocs := testing.AllocsPerRun(10, flow) / n; allocs > 0.01 {
		t.Errorf("%v allocations for a message", allocs)
	}
}

func TestLockFreeAllocatesNothingBeforeItsFirstMessage(t *testing.T) {
	q := new(LockFree[int])
	if allocs := testing.AllocsPerRun(100, func() {
		if _, ok := q.Pop(); ok || q.Len() != 0 {
			t.Error("an empty queue holds something")
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
