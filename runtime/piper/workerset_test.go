package piper

import (
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestAWorkerSetIsASet compares a set of workers with a map.
func TestAWorkerSetIsASet(t *testing.T) {
	speed.Checks(t, 100, 1000, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "workers")
		s, other, want := newWorkerSet(n), newWorkerSet(n), map[int]bool{}
		workers := make([]*Worker, n)
		for i := range workers {
			workers[i] = &Worker{index: i}
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "worker")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				s.add(workers[i])
				want[i] = true
			case 2:
				s.remove(workers[i])
				delete(want, i)
			case 3:
				taken := s.take()
				if taken < 0 && len(want) > 0 || taken >= 0 && !want[taken] {
					t.Fatalf("take returns %d of %v", taken, want)
				}
				delete(want, taken)
			}
			if s.len() != len(want) || s.any() != (len(want) > 0) {
				t.Fatalf("the set has %d workers, want %v", s.len(), want)
			}
			if got := s.anyWithout(&other, workers[i]); got != (len(want) > 1 || len(want) == 1 && !want[i]) {
				t.Fatalf("anyWithout worker %d reports %v, the set is %v", i, got, want)
			}
			next := -1
			for k := range n - 1 {
				if at := (i + 1 + k) % n; want[at] {
					next = at
					break
				}
			}
			if got := s.after(workers[i]); got != next {
				t.Fatalf("worker %d is followed by %d, want %d of %v", i, got, next, want)
			}
			if s.anyWithout(&s, workers[i]) {
				t.Fatalf("a set without itself has a worker: %v", want)
			}
		}
	})
}

// TestAWorkerIsTakenOnce checks that goroutines that take workers at the same time get different ones.
func TestAWorkerIsTakenOnce(t *testing.T) {
	const workers = 256
	s := newWorkerSet(workers)
	for i := range workers {
		s.add(&Worker{index: i})
	}
	taken := make([][]int, 4)
	var all sync.WaitGroup
	for g := range taken {
		all.Go(func() {
			for i := s.take(); i >= 0; i = s.take() {
				taken[g] = append(taken[g], i)
			}
		})
	}
	all.Wait()
	times := make([]int, workers)
	for _, list := range taken {
		for _, i := range list {
			times[i]++
		}
	}
	for i, n := range times {
		if n != 1 {
			t.Errorf("worker %d is taken %d times", i, n)
		}
	}
}

// TestAnInstanceIsDonatedToAFreeCPU checks that a worker hands over an instance whose turns are long only if
// a CPU is free, and that the idle worker gets no second one.
func TestAnInstanceIsDonatedToAFreeCPU(t *testing.T) {
	for _, c := range []struct {
		name               string
		threads            int32
		idle               []int
		turnNanos          uint32
		donated, idleAfter int
	}{
		{"each CPU has a worker", 1, []int{1, 2}, donateNanosMin, 0, 2},
		{"a CPU is free", 2, []int{1, 2}, donateNanosMin, 1, 1},
		{"no worker is idle", 4, nil, donateNanosMin, 0, 0},
		{"the turns are short", 4, []int{1, 2}, donateNanosMin - 1, 0, 2},
		{"each idle worker gets one", 4, []int{1, 2}, donateNanosMin, 2, 0},
		{"no instance had a turn, but the last turn was long", 2, []int{1, 2}, 0, 1, 1},
	} {
		p, err := New(Spec{Processors: []Processor{{Name: "a"}}, Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		p.threads.Store(c.threads)
		w := p.workers[0]
		w.sharing.setLong(true)
		for range 3 {
			u := new(Unit)
			p.Adopt(0, struct{}{}, u, new(Out))
			u.worker.Store(w)
			u.turnNanos, u.queued = c.turnNanos, true
			w.runq.push(u)
		}
		for _, i := range c.idle {
			p.idle.add(p.workers[i])
		}
		w.sharing.donate()
		if donated := 3 - w.runq.len(); donated != c.donated || p.idle.len() != c.idleAfter {
			t.Errorf("%s: %d instances are donated, and %d workers are idle", c.name, donated, p.idle.len())
		}
	}
}

// TestAnIdleWorkerAsksABusyOne checks that a worker that becomes idle makes one other worker end its turn, if
// that one has further instances and there is a CPU for both.
func TestAnIdleWorkerAsksABusyOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		threads int32
		idle    int
		offers  []int
		asked   int
	}{
		{"the next worker", 4, 1, []int{0, 2, 3}, 2},
		{"the first follows the last", 4, 3, []int{0, 2}, 0},
		{"no worker has further instances", 4, 1, nil, -1},
		{"no CPU is free", 3, 1, []int{0, 2, 3}, -1},
	} {
		p, err := New(Spec{Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		p.threads.Store(c.threads)
		for _, i := range c.offers {
			p.workers[i].sharing.setOffers(true)
		}
		w := p.workers[c.idle]
		p.idle.add(w)
		w.sharing.ask()
		for i, other := range p.workers {
			if got := other.yield.Load() == yieldAsked; got != (i == c.asked) {
				t.Errorf("%s: worker %d is asked: %v", c.name, i, got)
			}
		}
	}
}

// TestAWorkerDoesNotPollOnTheCPUOfAnother checks that a worker parks at once if each CPU has a busy worker.
func TestAWorkerDoesNotPollOnTheCPUOfAnother(t *testing.T) {
	for _, c := range []struct {
		threads int32
		polls   bool
	}{{2, false}, {3, true}} {
		p, err := New(Spec{Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		p.threads.Store(c.threads)
		w := p.workers[0]
		p.idle.add(w)
		w.inbox.push(&w.timers.note)
		if found := w.spin(); found != c.polls || p.spinning.Load() != 0 {
			t.Errorf("with 2 busy workers on %d threads, the third one polls: %v; %d are left", c.threads, found, p.spinning.Load())
		}
	}
}

// TestTheNumberOfThreadsMayChange checks that the pool notices when the program changes GOMAXPROCS.
func TestTheNumberOfThreadsMayChange(t *testing.T) {
	p, err := New(Spec{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	runtime.GOMAXPROCS(before + 3)
	p.monitor.look(make([]sighting, len(p.workers)))
	if n := int(p.threads.Load()); n != before+3 {
		t.Errorf("the pool has %d threads, want %d", n, before+3)
	}
}
