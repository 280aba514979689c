package siege

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// A Siege is an attack on a server that has other clients.
type Siege struct {
	Server  *Process
	Victims []Victim
	// Prepare opens what the attacker has when the attack begins, such as connections. It may be nil.
	Prepare func()
	// Attack does its worst until the context ends. It may be nil if Prepare is enough.
	Attack func(context.Context)
	// Attackers is the number of goroutines that call Attack. 0: one. The attacker and the server
	// share the cores of this computer, so a few are enough.
	Attackers int
	// For is the time in which calls are made during the attack. 0: 1 s, and 20 s in a long run.
	For time.Duration
	// MemoryMax is what the attack may add to the largest resident memory of the server, in bytes,
	// beside 16 MiB that the server may use for its victims. Garbage counts, which is at most as
	// much as the live memory. 0: no limit.
	MemoryMax int64
	// CPUMax is the processor time that the server may use for each second of the attack, beyond that
	// for its victims. 0: no limit.
	CPUMax time.Duration
}

// A Victim is a client that makes calls at a constant rate.
type Victim struct {
	Name string
	// Call makes one call. Many run at the same time if the server is slow.
	Call func(context.Context) error
	// Rate is the number of calls per second. 0: 100.
	Rate int
	// Deadline is the time in which a call must end. 0: 10 s.
	Deadline time.Duration
}

const (
	rateDefault     = 100
	deadlineDefault = 10 * time.Second // a computer that runs other tests may take seconds for a call
	shareMin        = 0.9              // of the calls of each victim
	victimsMemory   = 16 << 20         // garbage of calls, and heap of a new process
)

// A Result is what a siege has measured.
type Result struct {
	Before, During []Share       // of each victim
	Memory         int64         // growth of the largest resident memory of the server, in bytes
	CPU            time.Duration // that the server has used during the attack, beyond that for its victims
	Took           time.Duration // from the beginning of Attack until the last call has ended
}

// Run besieges a server, and checks what its clients get and what it uses.
func Run(t *testing.T, s Siege) Result {
	t.Helper()
	attack := speed.Pick(t, time.Second, time.Second, 20*time.Second)
	if s.For > 0 {
		attack = s.For
	}
	var r Result
	quietCPU, quietBegin := s.Server.CPU(t), time.Now()
	r.Before = offer(t.Context(), s.Victims, attack/4)
	quiet := float64(s.Server.CPU(t)-quietCPU) / float64(time.Since(quietBegin))
	check(t, "without an attack", r.Before)

	memory := s.Server.restartPeak(t)
	if s.Prepare != nil {
		s.Prepare()
	}
	ctx, end := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	cpu, begin := s.Server.CPU(t), time.Now()
	if s.Attack != nil {
		for range max(1, s.Attackers) {
			attackers.Go(func() { s.Attack(ctx) })
		}
	}
	r.During = offer(ctx, s.Victims, attack)
	r.Took = time.Since(begin)
	r.CPU = s.Server.CPU(t) - cpu
	r.Memory = s.Server.peak(t) - memory
	end()
	attackers.Wait()

	check(t, "during the attack", r.During)
	if most := s.MemoryMax + victimsMemory; s.MemoryMax > 0 && r.Memory > most {
		t.Errorf("the memory of the server has grown by %s, want at most %s", Bytes(r.Memory), Bytes(most))
	}
	r.CPU -= time.Duration(quiet * float64(r.Took))
	spent := time.Duration(float64(r.CPU) / r.Took.Seconds())
	if s.CPUMax > 0 && spent > s.CPUMax {
		t.Errorf("the server has used %v of processor time for each second of the attack, want at most %v", spent, s.CPUMax)
	}
	t.Logf("before %v, during %v, memory grew by %s, processor time of the attack %v per second", r.Before, r.During, Bytes(r.Memory), spent.Round(time.Millisecond))
	return r
}

// A Share says how many calls of a victim were served.
type Share struct {
	Name            string
	Offered, Served int
	Slowest         time.Duration // of the calls that were served
	Err             error         // of the first call that was not served
}

func (s Share) String() string {
	return fmt.Sprintf("%s: %d of %d calls, the slowest in %v", s.Name, s.Served, s.Offered, s.Slowest.Round(time.Millisecond))
}

func check(t *testing.T, when string, shares []Share) {
	t.Helper()
	for _, s := range shares {
		if float64(s.Served) < shareMin*float64(s.Offered) {
			t.Errorf("%s %d of %d calls of %s were served, want 90 %%; the first error is %v", when, s.Served, s.Offered, s.Name, s.Err)
		}
	}
}

// offer lets victims make calls for some time, and waits until the last one has ended.
func offer(ctx context.Context, victims []Victim, d time.Duration) []Share {
	shares := make([]Share, len(victims))
	var all sync.WaitGroup
	for i, v := range victims {
		all.Go(func() { shares[i] = v.offer(ctx, d) })
	}
	all.Wait()
	return shares
}

func (v Victim) offer(ctx context.Context, d time.Duration) Share {
	if v.Rate == 0 {
		v.Rate = rateDefault
	}
	if v.Deadline == 0 {
		v.Deadline = deadlineDefault
	}
	share := Share{Name: v.Name, Offered: max(1, int(float64(v.Rate)*d.Seconds()))}
	var (
		calls   sync.WaitGroup
		served  atomic.Int64
		slowest atomic.Int64
		failed  sync.Once
	)
	begin := time.Now()
	pace := time.NewTicker(time.Second / time.Duration(v.Rate))
	defer pace.Stop()
	for made := 0; made < share.Offered; <-pace.C {
		// A ticker drops ticks when this goroutine is late, so the time says how many calls are due.
		due := 1 + int(time.Since(begin).Seconds()*float64(v.Rate))
		for ; made < min(due, share.Offered); made++ {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, v.Deadline)
				defer cancel()
				start := time.Now()
				err := v.Call(ctx)
				took := time.Since(start)
				if err == nil && took > v.Deadline {
					err = errors.New("the call took " + took.String())
				}
				if err != nil {
					failed.Do(func() { share.Err = err })
					return
				}
				served.Add(1)
				for before := slowest.Load(); int64(took) > before && !slowest.CompareAndSwap(before, int64(took)); before = slowest.Load() {
				}
			})
		}
	}
	calls.Wait()
	share.Served, share.Slowest = int(served.Load()), time.Duration(slowest.Load())
	return share
}
