package queue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/topogen/topogen/internal/test/speed"
)

// call is a push of value, or a pop.
type call struct {
	push  bool
	value int
}

// answer is the result of a call: whether it succeeded, and the value of a pop.
type answer struct {
	ok    bool
	value int
}

// held is the state of a queue in the model.
type held struct {
	values string // one rune each
	ever   uint64 // pushed, by value
}

// fifo is the model of a queue of the given capacity, for a history that pops all
// values that it pushes, each once. It knows from the history that a value must be
// pushed before another one if its pop returned before the other's push began. Without
// this, the checker would try all orders of pushes before it looks at the pops.
func fifo(capacity int, history []porcupine.Operation) porcupine.Model {
	var before [64]uint64
	for _, late := range history {
		for _, early := range history {
			if poppedBy(early) >= 0 && poppedBy(late) >= 0 && early.Return < late.Call {
				before[poppedBy(late)] |= 1 << poppedBy(early)
			}
		}
	}
	return porcupine.Model{
		Init: func() any { return held{} },
		Step: func(state, input, output any) (bool, any) {
			q, in, out := state.(held), input.(call), output.(answer)
			switch {
			case in.push && len(q.values) < capacity:
				ok := out.ok && before[in.value]&^q.ever == 0
				return ok, held{q.values + string(rune(in.value)), q.ever | 1<<in.value}
			case in.push || q.values == "":
				return !out.ok, q
			}
			return out.ok && out.value == int(q.values[0]), held{q.values[1:], q.ever}
		},
	}
}

// poppedBy is the value that a call popped, or -1.
func poppedBy(o porcupine.Operation) int {
	if got := o.Output.(answer); got.ok && !o.Input.(call).push {
		return got.value
	}
	return -1
}

// describe formats a history: a line for each call, in the order in which they began,
// with their begin and end times.
func describe(history []porcupine.Operation) string {
	var out strings.Builder
	for _, o := range history {
		in, got := o.Input.(call), o.Output.(answer)
		fmt.Fprintf(&out, "%3d-%-3d goroutine %d: ", o.Call, o.Return, o.ClientId)
		switch {
		case in.push && got.ok:
			fmt.Fprintf(&out, "push %d\n", in.value)
		case in.push:
			fmt.Fprintf(&out, "push %d: full\n", in.value)
		case got.ok:
			fmt.Fprintf(&out, "pop: %d\n", got.value)
		default:
			out.WriteString("pop: empty\n")
		}
	}
	return out.String()
}

// many is a LockFree or a Ring.
type many struct {
	push func(int) bool
	pop  func() (int, bool)
}

func manyOfLockFree() many {
	q := new(LockFree[int])
	return many{func(v int) bool { q.Push(v); return true }, q.Pop}
}

func manyOfRing(capacity int) many {
	r := NewRing[int](capacity)
	return many{r.TryPush, r.TryPop}
}

func (q many) do(c call) answer {
	if c.push {
		return answer{ok: q.push(c.value)}
	}
	v, ok := q.pop()
	return answer{ok, v}
}

func TestLockFreeIsLinearizable(t *testing.T) {
	linearizable(t, 4000, 128, manyOfLockFree)
}

func TestRingIsLinearizable(t *testing.T) {
	for _, capacity := range []int{1, 2, 3, 8} {
		linearizable(t, 1500, capacity, func() many { return manyOfRing(capacity) })
	}
}

// linearizable records histories of random short programs on two to four goroutines
// that start together, and checks that each history has an order that explains it. The
// remaining values are popped at the end, so that the history has all pushed values.
func linearizable(t *testing.T, histories, capacity int, fresh func() many) {
	t.Helper()
	histories /= speed.Pick(t, 4, 1, 1)
	r := rand.New(rand.NewPCG(1, uint64(capacity)))
	overlapping := 0
	for range histories {
		history := record(fresh(), programs(r))
		if !porcupine.CheckOperations(fifo(capacity, history), history) {
			t.Fatalf("no order explains this:\n%s", describe(history))
		}
		if overlap(history) {
			overlapping++
		}
	}
	t.Logf("%d histories, %d with calls of several goroutines at a time", histories, overlapping)
	if yields && overlapping < histories/2 {
		t.Error("too few calls overlapped for a meaningful test")
	}
}

// programs are the calls of the goroutines of a history.
func programs(r *rand.Rand) [][]call {
	list := make([][]call, 2+r.IntN(3))
	value := 0
	for i := range list {
		pushes := r.IntN(5) // of four calls
		for range 3 + r.IntN(4) {
			if r.IntN(4) < pushes {
				value++
				list[i] = append(list[i], call{true, value})
			} else {
				list[i] = append(list[i], call{})
			}
		}
	}
	return list
}

// record runs programs. Its clock is a counter, so a call that returned before another
// one began has the lower time.
func record(q many, list [][]call) []porcupine.Operation {
	var clock atomic.Int64
	var waiting atomic.Int32
	waiting.Store(int32(len(list)))
	parts := make([][]porcupine.Operation, len(list)+1)
	run := func(i int, calls []call) {
		part := make([]porcupine.Operation, len(calls))
		for k, c := range calls {
			part[k] = porcupine.Operation{ClientId: i, Input: c, Call: clock.Add(1)}
			got := q.do(c)
			part[k].Output, part[k].Return = got, clock.Add(1)
		}
		parts[i] = part
	}
	var all sync.WaitGroup
	for i, calls := range list {
		all.Go(func() {
			for waiting.Add(-1); waiting.Load() > 0; {
				runtime.Gosched()
			}
			run(i, calls)
		})
	}
	all.Wait()
	var history []porcupine.Operation
	for left := true; left; {
		run(len(list), []call{{}})
		history = append(history, parts[len(list)]...)
		left = parts[len(list)][0].Output.(answer).ok
	}
	for _, part := range parts[:len(list)] {
		history = append(history, part...)
	}
	return history
}

// overlap reports whether two calls ran at the same time.
func overlap(history []porcupine.Operation) bool {
	for _, o := range history {
		if o.Return-o.Call > 1 {
			return true
		}
	}
	return false
}
