package queue

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestRingModel compares a ring with a slice.
func TestRingModel(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 20).Draw(t, "capacity")
		r := NewRing[int](capacity)
		var held []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				if ok := r.TryPush(next); ok != (len(held) < capacity) {
					t.Fatalf("TryPush with %d of %d: %v", len(held), capacity, ok)
				} else if ok {
					held = append(held, next)
					next++
				}
			},
			"pop": func(t *rapid.T) {
				v, ok := r.TryPop()
				if ok != (len(held) > 0) || ok && v != held[0] {
					t.Fatalf("TryPop with %v: %d, %v", held, v, ok)
				} else if ok {
					held = held[1:]
				}
			},
			"": func(t *rapid.T) {
				if r.Len() != len(held) || r.Cap() != capacity {
					t.Fatalf("Len %d, Cap %d; holds %d of %d", r.Len(), r.Cap(), len(held), capacity)
				}
			},
		})
	})
}

func TestRingOfNothing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a ring without capacity was made")
		}
	}()
	NewRing[int](0)
}

// item is the seq-th value of a producer.
type item struct{ producer, seq int }

// TestRingAcrossGoroutines checks that each value is popped once, that each consumer
// gets the values of one producer in order, and that Len stays within its bounds.
func TestRingAcrossGoroutines(t *testing.T) {
	for _, capacity := range []int{1, 2, 3, 64} {
		for _, sides := range [][2]int{{1, 1}, {1, 4}, {4, 1}, {4, 4}} {
			t.Run(fmt.Sprint(capacity, sides), func(t *testing.T) { ringAcross(t, capacity, sides[0], sides[1]) })
		}
	}
}

func ringAcross(t *testing.T, capacity, producers, consumers int) {
	each := speed.Pick(t, 2_000, 5_000, 20_000)
	r := NewRing[item](capacity)
	var wait sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(producers * each))
	for p := range producers {
		wait.Go(func() {
			for seq := 0; seq < each; {
				if r.TryPush(item{p, seq}) {
					seq++
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	seen := make([][]item, consumers)
	for c := range consumers {
		wait.Go(func() {
			for left.Load() > 0 {
				if n := r.Len(); n < 0 || n > capacity {
					t.Errorf("a ring of %d holds %d", capacity, n)
				}
				if v, ok := r.TryPop(); ok {
					left.Add(-1)
					seen[c] = append(seen[c], v)
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	wait.Wait()
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
	if len(count) != producers*each || r.Len() != 0 {
		t.Errorf("%d of %d values were popped, %d are left", len(count), producers*each, r.Len())
	}
}

// TestRingIsFullOnlyWhenItIs has fewer values than the ring has room for, so no push
// may fail.
func TestRingIsFullOnlyWhenItIs(t *testing.T) {
	const capacity, tokens = 8, 4 // goroutines that each hold one value
	r := NewRing[int](capacity)
	var wait sync.WaitGroup
	for range tokens {
		wait.Go(func() {
			for range 20_000 {
				if !r.TryPush(1) {
					t.Error("TryPush returned false although there was room")
					return
				}
				for {
					if _, ok := r.TryPop(); ok {
						break
					}
					t.Error("TryPop returned false although there was a value")
					return
				}
			}
		})
	}
	wait.Wait()
}
