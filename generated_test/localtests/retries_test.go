package localtests_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/retries"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

var errRetries = errors.New("told to fail")

type retriesStep = func(out *retries.SourceSender) error

// retriesPlay is a topology with its script and records.
type retriesPlay struct {
	retries.Script
	*retries.Topology
	letters []topo.DeadLetter
}

func newPlayRetries(t *testing.T, act func(ctx context.Context, h retries.Handling, attempt int) error, steps ...retriesStep) *retriesPlay {
	t.Helper()
	p := &retriesPlay{Script: retries.Script{Act: act}}
	var err error
	p.Topology, err = retries.New(retries.Processors{
		Source: func(topo.Instance) (*retries.Source, error) {
			return &retries.Source{Script: &p.Script, Steps: steps}, nil
		},
		Retries: func(topo.Instance) (*retries.Retries, error) { return &retries.Retries{Script: &p.Script}, nil },
		Skips:   func(topo.Instance) (*retries.Skips, error) { return &retries.Skips{Script: &p.Script}, nil },
		Once:    func(topo.Instance) (*retries.Once, error) { return &retries.Once{Script: &p.Script}, nil },
		Stops:   func(topo.Instance) (*retries.Stops, error) { return &retries.Stops{Script: &p.Script}, nil },
		Hangs:   func(topo.Instance) (*retries.Hangs, error) { return &retries.Hangs{Script: &p.Script}, nil },
		Waits:   func(topo.Instance) (*retries.Waits, error) { return &retries.Waits{Script: &p.Script}, nil },
		Morgue: func(topo.Instance) (*retries.Morgue, error) {
			return &retries.Morgue{Script: &p.Script, Letters: &p.letters}, nil
		},
		Sink: func(topo.Instance) (*retries.Sink, error) { return &retries.Sink{Script: &p.Script}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// of lists the messages that a processor received.
func (p *retriesPlay) of(who string) (list []int) {
	for _, h := range p.List {
		if h.Who == who {
			list = append(list, h.N)
		}
	}
	return list
}

func (p *retriesPlay) faults(t *testing.T, i retries.ProcessorIndex, want pool.FaultFigures) {
	t.Helper()
	if f := *p.Snapshot().Processors[i].Faults; f != want {
		t.Errorf("%s has %+v\nwant %+v", i, f, want)
	}
}

// numberedRetries sends messages that alternate between the edges of each pair.
func numberedRetries(n int) retriesStep {
	return func(out *retries.SourceSender) error {
		if n%2 == 0 {
			out.SendPlain(retries.Plain{N: n})
		} else {
			out.SendBox(retries.Box[string]{Of: make([]string, n)})
		}
		return nil
	}
}

// TestRetriesOrderIsKept checks the order over all edges of a pair and over attempts: a message is
// handled only after all attempts at earlier messages.
func TestRetriesOrderIsKept(t *testing.T) {
	const messages = 40
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		fails := make(map[retries.Handling]int)
		var steps []retriesStep
		for i := range messages {
			steps = append(steps, numberedRetries(i))
			for _, who := range []string{"retries", "stops"} {
				if random.IntN(3) == 0 {
					fails[retries.Handling{Who: who, N: i}] = 1 + random.IntN(4)
				}
			}
		}
		p := newPlayRetries(t, func(_ context.Context, h retries.Handling, attempt int) error {
			if attempt > fails[h] {
				return nil
			}
			if h.Who == "stops" && (h.N+attempt)%3 == 0 {
				panic(errRetries)
			}
			return errRetries
		}, steps...)
		p.Api().Close()
		if err := p.Stepper(seed).Run(); err != nil && !errors.Is(err, pool.ErrGaveUp) { // caused by the last message
			t.Fatalf("seed %d: %v", seed, err)
		}
		for who, attempts := range map[string]int{"retries": 3, "stops": 2} {
			var want []int
			for i := range messages {
				for range min(attempts, fails[retries.Handling{Who: who, N: i}]+1) {
					want = append(want, i)
				}
			}
			if got := p.of(who); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s was given\n%v\nwant\n%v", seed, who, got, want)
			}
		}
	}
}

// TestRetriesAsking checks requests to handlers that fail: the caller gets the reply of the
// successful attempt, or the error of the last one.
func TestRetriesAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		p := newPlayRetries(t, func(ctx context.Context, h retries.Handling, attempt int) error {
			switch {
			case h.N == 100+attempt && h.Who == "hangs":
				<-forever
			case h.N >= 10 && attempt <= h.N/10 && h.N < 100: // fails as often as the tens digit says
				return errRetries
			}
			return nil
		})
		ended := make(chan error)
		go func() { ended <- p.Run(t.Context()) }()
		api := p.Api()
		for _, c := range []struct {
			who  string
			ask  func(context.Context, retries.Query) (retries.Answer, error)
			n    int
			fail bool
		}{
			{"retries", api.AskQueryToRetries, 1, false},
			{"retries", api.AskQueryToRetries, 11, false},
			{"retries", api.AskQueryToRetries, 21, false},
			{"retries", api.AskQueryToRetries, 31, true},
			{"retries", api.AskQueryToRetries, 2, false},
			{"skips", api.AskQueryToSkips, 1, false},
			{"skips", api.AskQueryToSkips, 11, true},
			{"stops", api.AskQueryToStops, 1, false},
			{"stops", api.AskQueryToStops, 11, false},
			{"stops", api.AskQueryToStops, 21, true},
			{"hangs", api.AskQueryToHangs, 1, false},
			{"hangs", api.AskQueryToHangs, 11, true},
			{"hangs", api.AskQueryToHangs, 101, true},
			{"hangs", api.AskQueryToHangs, 2, false},
		} {
			a, err := c.ask(t.Context(), retries.Query{N: c.n})
			if c.fail != (err != nil) || err == nil && a.N != c.n || err != nil && !errors.Is(err, topo.ErrFailed) {
				t.Errorf("%s %d: %v, %v", c.who, c.n, a, err)
			}
		}
		api.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(forever)
		synctest.Wait()
		// The dead letters are the original queries.
		var letters []string
		for _, d := range p.letters {
			for _, letter := range []func(topo.DeadLetter) (retries.Query, bool){retries.DeadLetterApiRetriesQuery, retries.DeadLetterApiSkipsQuery, retries.DeadLetterApiStopsQuery, retries.DeadLetterApiHangsQuery} {
				if q, ok := letter(d); ok {
					letters = append(letters, fmt.Sprint(d.Processor, " ", q.N, " ", d.Attempts, " ", retries.EdgeIndex(d.Edge)))
				}
			}
		}
		want := []string{
			"retries 31 3 api -> retries: Query", "skips 11 1 api -> skips: Query", "stops 21 2 api -> stops: Query",
			"hangs 11 1 api -> hangs: Query", "hangs 101 1 api -> hangs: Query",
		}
		if !slices.Equal(letters, want) {
			t.Errorf("%q", letters)
		}
		p.faults(t, retries.ProcessorHangs, pool.FaultFigures{Restarts: 2, HealthCheckKills: 1, Abandoned: 1, DeadLetters: 2})
		p.faults(t, retries.ProcessorRetries, pool.FaultFigures{DeadLetters: 1})
		p.faults(t, retries.ProcessorStops, pool.FaultFigures{Restarts: 3, DeadLetters: 1})
	})
}

// TestRetriesRepliesToProcessors checks that a processor gets the reply of the successful attempt,
// and no reply if all attempts fail.
func TestRetriesRepliesToProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []retriesStep
		for _, n := range []int{1, 11, 21, 2} {
			steps = append(steps, func(out *retries.SourceSender) error { out.SendQuery(retries.Query{N: n}); return nil })
		}
		p := newPlayRetries(t, func(_ context.Context, h retries.Handling, attempt int) error {
			if attempt <= h.N/10 && h.Who != "answer" && h.Who != "morgue" {
				return errRetries
			}
			return nil
		}, steps...)
		p.Api().Close()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		answers := p.of("answer")
		slices.Sort(answers)
		if want := []int{1, 1, 2, 2, 11}; !slices.Equal(answers, want) { // 11 is from the processor with two attempts
			t.Errorf("%v", answers)
		}
	})
}

// TestRetriesASourceThatFails checks that on_error: skip lets a source continue after an error, and
// a processor after an error at a tick.
func TestRetriesASourceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := func(*retries.SourceSender) error { return errRetries }
		p := newPlayRetries(t, func(_ context.Context, h retries.Handling, attempt int) error {
			if h.Who == "tick" || h.Who == "answer" {
				return errRetries
			}
			return nil
		}, failing, numberedRetries(2), failing, failing, func(out *retries.SourceSender) error { out.SendQuery(retries.Query{N: 1}); return nil })
		time.AfterFunc(150*time.Minute, p.Api().Close)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.of("tick"), []int{1, 2}) || !slices.Equal(p.of("stops"), []int{2, 1}) || len(p.of("answer")) != 2 {
			t.Errorf("%v", p.List)
		}
		p.faults(t, retries.ProcessorSource, pool.FaultFigures{Dropped: 2})
		p.faults(t, retries.ProcessorSkips, pool.FaultFigures{Dropped: 2})
	})
}

// TestRetriesDeadLetters checks that a dead letter has the original message, even if its handler has
// changed its copy or is still using it.
func TestRetriesDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		p := newPlayRetries(t, func(ctx context.Context, h retries.Handling, attempt int) error {
			switch {
			case h.Who == "hangs" && h.N < 100:
				<-over // then the handler writes to its copy
			case h.Who == "retries", h.Who == "skips", h.Who == "once":
				return errRetries
			}
			return nil
		}, numberedRetries(2), numberedRetries(3))
		time.AfterFunc(250*time.Millisecond, func() {
			close(over)
			p.Api().Close()
		})
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range p.letters {
			for _, letter := range []func(topo.DeadLetter) (retries.Plain, bool){retries.DeadLetterSourceRetriesPlain, retries.DeadLetterSourceHangsPlain, retries.DeadLetterSourceStopsPlain} {
				if m, ok := letter(d); ok {
					got = append(got, fmt.Sprint(d.Processor, m.N, d.Attempts))
				}
			}
			for _, letter := range []func(topo.DeadLetter) (retries.Box[string], bool){retries.DeadLetterSourceRetriesBox, retries.DeadLetterSourceHangsBox, retries.DeadLetterSourceStopsBox, retries.DeadLetterSourceSkipsBox, retries.DeadLetterSourceOnceBox} {
				if m, ok := letter(d); ok {
					got = append(got, fmt.Sprintf("%s%q%d", d.Processor, m.Of, d.Attempts))
				}
			}
		}
		slices.Sort(got)
		if want := []string{"hangs2 1", `hangs["" "" ""]1`, `once["" "" ""]1`, "retries2 3", `retries["" "" ""]3`, `skips["" "" ""]1`}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// TestRetriesTheDeadDieAgain checks that a processor for dead letters may fail and is restarted like
// any other.
func TestRetriesTheDeadDieAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retried := func(out *retries.SourceSender) error { out.SendPlainToRetries(retries.Plain{N: 1}); return nil }
		p := newPlayRetries(t, func(ctx context.Context, h retries.Handling, attempt int) error {
			if h.Who == "retries" || h.Who == "morgue" && h.N != 2 && h.N < 4 {
				return errRetries
			}
			return nil
		}, retried, retried, retried)
		p.Api().Close()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.of("morgue"); !slices.Equal(got, []int{1, 2, 3, 4, 5}) { // two letters take two attempts
			t.Errorf("%v", got)
		}
		p.faults(t, retries.ProcessorMorgue, pool.FaultFigures{Restarts: 2})
	})
}

// TestRetriesBlocking checks handler calls longer than the timeout, with and without topo.Alive.
func TestRetriesBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayRetries(t, func(ctx context.Context, h retries.Handling, attempt int) error {
			if h.Who != "waits" {
				return nil
			}
			for range 10 {
				<-time.After(90 * time.Millisecond)
				if h.N != 4 {
					topo.Alive(ctx)
				}
			}
			return nil
		}, numberedRetries(2), numberedRetries(4), numberedRetries(6))
		p.Api().Close()
		begun := time.Now()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d != 1900*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		p.faults(t, retries.ProcessorWaits, pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1, Dropped: 1})
		<-time.After(time.Second)
	})
}

// TestRetriesFullAndTimed checks that a timed handler may fail because of a full queue.
func TestRetriesFullAndTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []retriesStep
		for n := range 10 {
			steps = append(steps, numberedRetries(2*n))
		}
		p := newPlayRetries(t, nil, steps...)
		p.Api().Close()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := *p.Snapshot().Processors[retries.ProcessorHangs].Faults
		full := 0
		for _, d := range p.letters {
			if errors.Is(d.Err, topo.ErrFull) {
				full++
			}
		}
		// After the last failure there may be no work for a restart.
		if len(p.of("sink"))+full != 10 || int(f.DeadLetters) != full || f.Restarts+1 < uint64(full) || f.Restarts > uint64(full) {
			t.Errorf("%d arrived, %d found no room: %+v", len(p.of("sink")), full, f)
		}
	})
}
