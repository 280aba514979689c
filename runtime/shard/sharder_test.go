package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// job is a controller made of functions; nil functions do nothing. Its rounds take a
// millisecond.
type job struct {
	first      [][]int
	process    func(ctx context.Context, shard int, mayUpdate bool) error
	pre        func(ctx context.Context, worker int, mayUpdate bool) error
	onSwitch   func(worker int, shards []int)
	resharding func(old [][]int) ([][]int, error)
	max        int
}

func (j *job) ProcessShard(ctx context.Context, shard int, mayUpdate bool) error {
	if j.process == nil {
		return nil
	}
	return j.process(ctx, shard, mayUpdate)
}

func (j *job) PreProcess(ctx context.Context, worker int, mayUpdate bool) error {
	if j.pre == nil {
		pass(ctx, time.Millisecond)
		return nil
	}
	return j.pre(ctx, worker, mayUpdate)
}

func (j *job) OnSwitch(worker int, shards []int) {
	if j.onSwitch != nil {
		j.onSwitch(worker, shards)
	}
}

func (j *job) InitialSharding(int) ([][]int, error) { return j.first, nil }

func (j *job) Resharding(old [][]int) ([][]int, error) {
	if j.resharding == nil {
		return old, nil
	}
	return j.resharding(old)
}

func (j *job) MaxWorkers() int { return max(j.max, len(j.first)) }

// pass waits for a time or until the context ends. It makes no timer for zero time: two
// goroutines of a bubble that receive from expired timers at the same time crash the race
// detector of Go 1.26 (both use the bubble's race context in
// runtime.(*timer).unlockAndRun).
func pass(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// inTime runs a sharder in virtual time, until it ends or the time has passed.
func inTime(t *testing.T, d time.Duration, s *Sharder[*job]) (err error) {
	t.Helper()
	if s.Workers == 0 {
		s.Workers = s.Controller.MaxWorkers()
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		err = s.Run(ctx)
	})
	return err
}

// TestEachSecond: there is a decision each second, which gets the configuration of the
// last one, and OnSwitch is called on every worker after each.
func TestEachSecond(t *testing.T) {
	var times []time.Duration
	var mu sync.Mutex
	got := make([]string, 2)
	began := time.Time{}
	j := &job{first: [][]int{{0, 1}, {2}}}
	j.onSwitch = func(worker int, shards []int) {
		mu.Lock()
		defer mu.Unlock()
		if began.IsZero() {
			began = time.Now()
		}
		got[worker] += fmt.Sprint(shards)
	}
	j.resharding = func(old [][]int) ([][]int, error) {
		times = append(times, time.Since(began).Round(100*time.Millisecond))
		return [][]int{old[1], old[0]}, nil
	}
	if err := inTime(t, 3500*time.Millisecond, &Sharder[*job]{Controller: j}); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(times, want) {
		t.Errorf("decisions after %v, want %v", times, want)
	}
	if want := []string{"[0 1][2][0 1][2]", "[2][0 1][2][0 1]"}; !slices.Equal(got, want) {
		t.Errorf("calls of OnSwitch: got %v, want %v", got, want)
	}
}

func TestIntervals(t *testing.T) {
	for interval, want := range map[time.Duration]int64{-1: 0, 0: 9, 3 * time.Second: 3} {
		var decided atomic.Int64
		j := &job{first: [][]int{{0}, {}, {1}}, resharding: func(old [][]int) ([][]int, error) {
			decided.Add(1)
			return old, nil
		}}
		if err := inTime(t, 9990*time.Millisecond, &Sharder[*job]{Controller: j, Interval: interval}); err != nil {
			t.Fatal(err)
		}
		if decided.Load() != want {
			t.Errorf("interval %v: got %d decisions, want %d", interval, decided.Load(), want)
		}
	}
}

// TestDoneShardsAreLeftAlone: a shard is not called again after it returned Done, even if
// it moves to another worker. Run ends when all are done.
func TestDoneShardsAreLeftAlone(t *testing.T) {
	const shards, workers = 10, 3
	calls := make([]int, shards)
	j := &job{first: RoundRobin(shards, workers)}
	j.process = func(_ context.Context, shard int, _ bool) error {
		if calls[shard]++; calls[shard] == 1+300*shard {
			return fmt.Errorf("enough: %w", Done)
		}
		return nil
	}
	j.resharding = func(old [][]int) ([][]int, error) {
		return [][]int{old[2], append(old[0], old[1]...), nil}, nil
	}
	if err := inTime(t, time.Hour, &Sharder[*job]{Controller: j}); err != nil {
		t.Fatal(err)
	}
	for shard, n := range calls {
		if n != 1+300*shard {
			t.Errorf("shard %d was called %d times", shard, n)
		}
	}
}

// TestAWorkerWithoutShardsSleeps: a worker sleeps until it gets shards.
func TestAWorkerWithoutShardsSleeps(t *testing.T) {
	rounds := make([]int, 3)
	j := &job{first: [][]int{{0, 1}}, max: 3}
	j.pre = func(ctx context.Context, worker int, _ bool) error {
		rounds[worker]++
		pass(ctx, time.Millisecond)
		return nil
	}
	j.resharding = func([][]int) ([][]int, error) { return [][]int{{}, {1, 0}, {}}, nil }
	if err := inTime(t, 1900*time.Millisecond, &Sharder[*job]{Controller: j}); err != nil {
		t.Fatal(err)
	}
	if rounds[0] < 900 || rounds[0] > 1100 || rounds[1] < 800 || rounds[1] > 1000 || rounds[2] != 0 {
		t.Errorf("the workers began %v rounds", rounds)
	}
}

// TestAShardThatIsWaitedForHoldsUpNobodyElse: a worker is busy with a shard that another
// worker must acquire. A third worker continues.
func TestAShardThatIsWaitedForHoldsUpNobodyElse(t *testing.T) {
	var stuck atomic.Bool
	var got atomic.Int64 // when worker 1 got shard 2, in seconds
	var third atomic.Int64
	j := &job{first: [][]int{{0}, {1}, {2}}}
	began := time.Time{}
	var once sync.Once
	j.onSwitch = func(worker int, shards []int) {
		once.Do(func() { began = time.Now() })
		if worker == 1 && slices.Contains(shards, 2) {
			got.CompareAndSwap(0, int64(time.Since(began)/time.Second))
		}
	}
	j.process = func(ctx context.Context, shard int, mayUpdate bool) error {
		if shard == 2 && !mayUpdate && stuck.CompareAndSwap(false, true) {
			pass(ctx, 10*time.Second)
		}
		if shard == 1 && stuck.Load() {
			third.Add(1)
		}
		return nil
	}
	j.resharding = func(old [][]int) ([][]int, error) { return [][]int{old[1], old[2], old[0]}, nil }
	// Worker 2 promises first, the others only after it has begun to process the shard.
	j.pre = func(ctx context.Context, worker int, _ bool) error {
		if worker == 2 {
			pass(ctx, time.Millisecond)
		} else {
			pass(ctx, 300*time.Millisecond)
		}
		return nil
	}
	if err := inTime(t, 8*time.Second, &Sharder[*job]{Controller: j}); err != nil {
		t.Fatal(err)
	}
	if !stuck.Load() || got.Load() != 0 || third.Load() < 20 {
		t.Errorf("stuck: %v; in 8 s worker 1 got shard 2 after %d s, and shard 1 was called %d times", stuck.Load(), got.Load(), third.Load())
	}
	stuck.Store(false)
	once = sync.Once{}
	if err := inTime(t, 18*time.Second, &Sharder[*job]{Controller: j}); err != nil {
		t.Fatal(err)
	}
	if got.Load() != 11 {
		t.Errorf("worker 1 got shard 2 after %d s", got.Load())
	}
}

var errBoom = errors.New("boom")

// failing returns a job of 2 workers and 4 shards whose named method fails about once a
// second.
func failing(method string, fail func() error) *job {
	j := &job{first: RoundRobin(4, 2)}
	switch method {
	case "ProcessShard":
		j.process = func(_ context.Context, shard int, _ bool) error {
			if shard == 1 {
				return fail()
			}
			return nil
		}
	case "PreProcess":
		j.pre = func(ctx context.Context, worker int, _ bool) error {
			pass(ctx, time.Millisecond)
			if worker == 1 {
				return fail()
			}
			return nil
		}
	case "OnSwitch":
		j.onSwitch = func(worker int, _ []int) {
			if worker == 1 {
				if err := fail(); err != nil {
					panic(err)
				}
			}
		}
	case "Resharding":
		j.resharding = func([][]int) ([][]int, error) { return nil, fail() }
	}
	return j
}

// TestAFailureEndsRun: by default a failure ends Run, with an error that names the
// method.
func TestAFailureEndsRun(t *testing.T) {
	for _, c := range []struct {
		method string
		fail   func() error
		is     error
		text   string
		shard  int
	}{
		{"ProcessShard", func() error { return errBoom }, errBoom, "shard: ProcessShard of shard 1 on worker 1: boom", 1},
		{"ProcessShard", func() error { panic(errBoom) }, errBoom, "shard: ProcessShard of shard 1 on worker 1: panic: boom\n", 1},
		{"ProcessShard", func() error { panic("boom") }, nil, "shard: ProcessShard of shard 1 on worker 1: panic: boom\n", 1},
		{"ProcessShard", func() error { panic(Done) }, Done, "shard: ProcessShard of shard 1 on worker 1: panic: shard: done\n", 1},
		{"ProcessShard", func() error { runtime.Goexit(); return nil }, ErrGoexit, "shard: ProcessShard of shard 1 on worker 1: the method", 1},
		{"PreProcess", func() error { return errBoom }, errBoom, "shard: PreProcess on worker 1: boom", none},
		{"OnSwitch", func() error { panic("boom") }, nil, "shard: OnSwitch on worker 1: panic: boom\n", none},
		{"Resharding", func() error { return errBoom }, errBoom, ": boom", none},
		{"Resharding", func() error { return nil }, ErrConfiguration, ": shard: invalid configuration: shard 0 is given to no worker", none},
		{"Resharding", func() error { panic("boom") }, nil, ": panic: boom\n", none},
	} {
		err := inTime(t, time.Hour, &Sharder[*job]{Controller: failing(c.method, c.fail)})
		e, ok := errors.AsType[*Error](err)
		if !ok || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: Run returned %v", c.method, err)
			continue
		}
		if e.Method != c.method || e.Shard != c.shard || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got error %v, want %s", c.method, err, c.text)
		}
		if strings.HasSuffix(c.text, "\n") != (e.Stack != nil) {
			t.Errorf("%s: the stack is %q", c.method, e.Stack)
		}
	}
}

// TestAnIgnoredFailure: repeated failures that OnError ignores do not stop the
// work or the promises. Otherwise a shard that always fails would prevent new
// configurations.
func TestAnIgnoredFailure(t *testing.T) {
	for _, method := range []string{"ProcessShard", "PreProcess", "OnSwitch", "Resharding"} {
		for _, fail := range []func() error{func() error { return errBoom }, func() error { panic(errBoom) }} {
			var failures, work, decided, updates atomic.Int64
			j := failing(method, fail)
			process, resharding := j.process, j.resharding
			j.process = func(ctx context.Context, shard int, mayUpdate bool) error {
				if shard == 3 { // follows shard 1 on the same worker
					work.Add(1)
					if mayUpdate {
						updates.Add(1)
					}
				}
				if process != nil {
					return process(ctx, shard, mayUpdate)
				}
				return nil
			}
			j.resharding = func(old [][]int) ([][]int, error) {
				decided.Add(1)
				if resharding != nil {
					return resharding(old)
				}
				return old, nil
			}
			s := &Sharder[*job]{Controller: j, OnError: func(e *Error) error {
				if e.Method != method || !errors.Is(e, errBoom) {
					t.Errorf("%s: OnError was called with %v", method, e)
				}
				failures.Add(1)
				return nil
			}}
			if err := inTime(t, 5500*time.Millisecond, s); err != nil {
				t.Error(method, err)
			}
			if failures.Load() == 0 || work.Load() < 5000 || updates.Load() < 4900 || decided.Load() != 5 {
				t.Errorf("%s: %d failures; in 5.5 s shard 3 was called %d times, %d times to update; %d decisions",
					method, failures.Load(), work.Load(), updates.Load(), decided.Load())
			}
		}
	}
}

// TestErrorsAfterTheContextEnded: an error that a call returns because the context ended is not a
// failure. Other errors are.
func TestErrorsAfterTheContextEnded(t *testing.T) {
	j := &job{first: RoundRobin(4, 2)}
	j.process = func(ctx context.Context, shard int, _ bool) error {
		<-ctx.Done()
		return fmt.Errorf("shard %d: %w", shard, ctx.Err())
	}
	s := &Sharder[*job]{Controller: j, OnError: func(e *Error) error { t.Error("OnError was called with", e); return nil }}
	if err := inTime(t, time.Second, s); err != nil {
		t.Error(err)
	}
	j.process = func(ctx context.Context, shard int, _ bool) error {
		<-ctx.Done()
		return fmt.Errorf("shard %d: %w", shard, errBoom)
	}
	err := inTime(t, time.Second, &Sharder[*job]{Controller: j})
	if err == nil || strings.Count(err.Error(), "boom") != 2 { // from both workers
		t.Error(err)
	}
}

// TestWaitingWorkersEnd: the end of the context reaches workers that wait for a
// shard, wait in PreProcess, or sleep. Run returns after all have returned.
func TestWaitingWorkersEnd(t *testing.T) {
	var back atomic.Bool
	j := &job{first: [][]int{{0}, {1}, {}}}
	j.process = func(ctx context.Context, shard int, mayUpdate bool) error {
		if shard == 0 && !mayUpdate { // the next configuration gives it to worker 1
			<-ctx.Done()
			<-time.After(time.Second) // a call that ignores its context
			back.Store(true)
		}
		return nil
	}
	j.pre = func(ctx context.Context, worker int, _ bool) error {
		pass(ctx, time.Duration(1+100*worker)*time.Millisecond)
		return nil
	}
	j.resharding = func([][]int) ([][]int, error) { return [][]int{{}, {0, 1}, {}}, nil }
	if err := inTime(t, 3*time.Second, &Sharder[*job]{Controller: j}); err != nil {
		t.Error(err)
	}
	if !back.Load() {
		t.Error("Run returned while a call was running")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&Sharder[*job]{Controller: j, Workers: 3}).Run(ended); err != nil {
		t.Error(err)
	}
}

// TestNothingIsCalledAfterTheEnd: a worker does not finish its round after the context
// ended.
func TestNothingIsCalledAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	j := &job{first: [][]int{{0, 1, 2}}}
	j.process = func(_ context.Context, shard int, _ bool) error {
		if shard != 0 {
			t.Error("called: shard", shard)
		}
		cancel()
		return nil
	}
	if err := (&Sharder[*job]{Controller: j}).Run(ctx); err != nil {
		t.Error(err)
	}
}

// TestHowManyWorkers: the number is Workers or GOMAXPROCS, limited to MaxWorkers, and at
// least 1.
func TestHowManyWorkers(t *testing.T) {
	for _, c := range []struct{ workers, max, want int }{
		{0, 1000, runtime.GOMAXPROCS(0)}, {0, 1, 1}, {3, 1000, 3}, {3, 2, 2}, {0, 0, 1}, {2, -1, 1},
	} {
		counts := &counter{max: c.max}
		if err := (&Sharder[*counter]{Controller: counts, Workers: c.workers}).Run(t.Context()); err != nil {
			t.Error(err)
		}
		if counts.workers != c.want {
			t.Errorf("%+v: %d workers", c, counts.workers)
		}
	}
	if err := (&Sharder[*counter]{Controller: &counter{max: 2}, Workers: -1}).Run(t.Context()); err == nil {
		t.Error("-1 workers are accepted")
	}
}

// TestTheFirstConfigurationIsChecked: an error of InitialSharding ends Run.
func TestTheFirstConfigurationIsChecked(t *testing.T) {
	err := (&Sharder[*job]{Controller: &job{first: [][]int{{0, 2}}}}).Run(t.Context())
	if e, ok := errors.AsType[*Error](err); !ok || e.Method != "InitialSharding" || !errors.Is(err, ErrConfiguration) {
		t.Error(err)
	}
	err = (&Sharder[*counter]{Controller: &counter{max: 2, err: errBoom}}).Run(t.Context())
	if !errors.Is(err, errBoom) || err.Error() != "shard: InitialSharding: boom" {
		t.Error(err)
	}
}

// TestTheZeroValue: it can be used if the zero value of the controller can, also for a
// value type.
func TestTheZeroValue(t *testing.T) {
	var s Sharder[nothing]
	if err := s.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// counter is a job without shards that counts its workers.
type counter struct {
	job
	max, workers int
	err          error
}

func (c *counter) InitialSharding(workers int) ([][]int, error) {
	c.workers = workers
	return nil, c.err
}
func (c *counter) MaxWorkers() int { return c.max }

// nothing is a job without shards.
type nothing struct{}

func (nothing) ProcessShard(context.Context, int, bool) error { return nil }
func (nothing) PreProcess(context.Context, int, bool) error   { return nil }
func (nothing) OnSwitch(int, []int)                           {}
func (nothing) InitialSharding(workers int) ([][]int, error)  { return RoundRobin(0, workers), nil }
func (nothing) Resharding(old [][]int) ([][]int, error)       { return old, nil }
func (nothing) MaxWorkers() int                               { return 3 }
