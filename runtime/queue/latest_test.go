package queue

import (
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/internal/race"
)

// TestLatestModel compares a Latest with a slice.
func TestLatestModel(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 60).Draw(t, "capacity")
		q, l := new(Latest[string]), new(listenerCounts)
		Init(q, 3, capacity, l)
		keeps := rapid.Bool().Draw(t, "keeps all")
		if keeps {
			q.Head.KeepAll()
		}
		type entry struct {
			n uint64
			m string
		}
		var held []entry
		var next, evicted, taken uint64
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					next += uint64(1 + rapid.IntRange(0, 3).Draw(t, "gap"))
					m := rapid.StringN(0, 3, 10).Draw(t, "m")
					q.Put(m, next)
					if held = append(held, entry{next, m}); len(held) > capacity && !keeps {
						held = held[1:]
						evicted++
					}
				}
			},
			"take": func(t *rapid.T) {
				n, ok := q.First()
				if ok != (len(held) > 0) || ok && n != held[0].n {
					t.Fatalf("First is %d, %v", n, ok)
				}
				if _, ok := q.Take(n + 1); ok {
					t.Fatal("Take removed another message than First returned")
				}
				if m, taking := q.Take(n); taking != ok || ok && m != held[0].m {
					t.Fatalf("took %q, %v", m, taking)
				}
				if ok {
					held = held[1:]
					taken++
				}
			},
			"pop": func(t *rapid.T) {
				m, ok := q.Pop()
				if ok != (len(held) > 0) || ok && m != held[0].m {
					t.Fatalf("popped %q, %v", m, ok)
				}
				if ok {
					held = held[1:]
					taken++
				}
			},
			"": func(t *rapid.T) {
				if q.Head.Len() != len(held) || q.Head.Taken() != taken || q.Head.Dropped() != evicted || q.Head.Sent() != taken+evicted+uint64(len(held)) {
					t.Fatalf("len %d, taken %d, dropped %d, sent %d; held %d, taken %d, evicted %d",
						q.Head.Len(), q.Head.Taken(), q.Head.Dropped(), q.Head.Sent(), len(held), taken, evicted)
				}
			},
		})
	})
}

// TestLatestAcrossGoroutines checks that the taken messages are in ascending order,
// that the length does not exceed the capacity, that the last message is not dropped,
// and that the counts agree.
func TestLatestAcrossGoroutines(t *testing.T) {
	n := uint64(200_000)
	if race.Enabled {
		n /= 10
	}
	for _, capacity := range []int{1, 2, 7, 1000} {
		q := new(Latest[uint64])
		Init(q, 0, capacity, new(listenerCounts))
		var wait sync.WaitGroup
		wait.Go(func() {
			for i := uint64(1); i <= n; i++ {
				q.Put(i, i)
				if i%64 == 0 {
					q.Head.Publish(false)
				}
			}
		})
		var last, got uint64
		for last < n {
			number, ok := q.First()
			if !ok {
				runtime.Gosched()
				continue
			}
			if held := q.Head.Len(); held < 0 || held > capacity {
				t.Fatalf("a queue of %d holds %d", capacity, held)
			}
			m, ok := q.Take(number)
			if !ok {
				continue
			}
			if m != number || m <= last {
				t.Fatalf("message %d with number %d comes after %d", m, number, last)
			}
			last = m
			got++
		}
		wait.Wait()
		if q.Head.Len() != 0 || q.Head.Taken() != got || q.Head.Dropped() != n-got || q.Head.Sent() != n {
			t.Errorf("of %d sent %d were taken and %d dropped, %d are left", q.Head.Sent(), q.Head.Taken(), q.Head.Dropped(), q.Head.Len())
		}
	}
}

// farewell is a message that counts its evictions.
type farewell struct{ evicted *int }

func (f *farewell) Evicted() { *f.evicted++ }

func TestLatestTellsWhatItEvicts(t *testing.T) {
	evicted := 0
	q := new(Latest[farewell])
	Init(q, 0, 3, new(listenerCounts))
	for i := range uint64(10) {
		q.Put(farewell{&evicted}, i)
	}
	if evicted != 7 {
		t.Errorf("Evicted was called for %d messages, want 7", evicted)
	}
}

// TestLatestMemory checks the memory of a queue at its capacity.
func TestLatestMemory(t *testing.T) {
	q := new(Latest[[9]uint64])
	Init(q, 0, 1000, new(listenerCounts))
	for i := range uint64(10_000) {
		q.Put([9]uint64{}, i)
	}
	size := int(unsafe.Sizeof([9]uint64{}))
	if got := cap(q.ring) * int(unsafe.Sizeof(q.ring[0])); got > 1000*size*12/10 {
		t.Errorf("1000 messages of %d bytes take %d", size, got)
	}
}

// TestLatestLetsGoOfMessages checks that taken and evicted messages can be freed.
func TestLatestLetsGoOfMessages(t *testing.T) {
	q := new(Latest[*int])
	Init(q, 0, 4, new(listenerCounts))
	for i := range uint64(10) {
		q.Put(new(int), i)
	}
	for _, ok := q.Pop(); ok; _, ok = q.Pop() {
	}
	for _, e := range q.ring {
		if e.M != nil {
			t.Error("a message is held after it was taken")
		}
	}
}

// TestSharedLatest has goroutines that share the producer of a Latest. Its receiver must be woken
// for each message that enters the queue, and only for these.
func TestSharedLatest(t *testing.T) {
	q, counts := new(Latest[int]), new(listenerCounts)
	h := Init(q, 0, 2, counts)
	for n := range 5 {
		if h.PublishShared() {
			t.Error("PublishShared returns true without a message")
		}
		q.Put(n, uint64(n))
		if !h.PublishShared() {
			t.Errorf("PublishShared returns false after message %d", n)
		}
	}
}
