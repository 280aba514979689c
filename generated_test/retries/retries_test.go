package retries

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

var errTold = errors.New("told to fail")

type step = func(out *SourceSender) error

// play is a topology with its script and records.
type play struct {
	script
	*Topology
	letters []topo.DeadLetter
}

func newPlay(t *testing.T, act func(ctx context.Context, h handling, attempt int) error, steps ...step) *play {
	t.Helper()
	p := &play{script: script{act: act}}
	var err error
	p.Topology, err = New(Processors{
		Source:  func(topo.Instance) (*Source, error) { return &Source{&p.script, steps}, nil },
		Retries: func(topo.Instance) (*Retries, error) { return &Retries{&p.script}, nil },
		Skips:   func(topo.Instance) (*Skips, error) { return &Skips{&p.script}, nil },
		Stops:   func(topo.Instance) (*Stops, error) { return &Stops{&p.script}, nil },
		Hangs:   func(topo.Instance) (*Hangs, error) { return &Hangs{&p.script}, nil },
		Waits:   func(topo.Instance) (*Waits, error) { return &Waits{&p.script}, nil },
		Morgue:  func(topo.Instance) (*Morgue, error) { return &Morgue{&p.script, &p.letters}, nil },
		Sink:    func(topo.Instance) (*Sink, error) { return &Sink{&p.script}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// of lists the messages that a processor received.
func (p *play) of(who string) (list []int) {
	for _, h := range p.list {
		if h.who == who {
			list = append(list, h.n)
		}
	}
	return list
}

func (p *play) faults(t *testing.T, i ProcessorIndex, want pool.FaultFigures) {
	t.Helper()
	if f := *p.Snapshot().Processors[i].Faults; f != want {
		t.Errorf("%s has %+v\nwant %+v", i, f, want)
	}
}

// numbered sends messages that alternate between the edges of each pair.
func numbered(n int) step {
	return func(out *SourceSender) error {
		if n%2 == 0 {
			out.SendPlain(Plain{n})
		} else {
			out.SendBox(Box[string]{make([]string, n)})
		}
		return nil
	}
}

// TestOrderIsKept checks the order over all edges of a pair and over attempts: a message is
// handled only after all attempts at earlier messages.
func TestOrderIsKept(t *testing.T) {
	const messages = 40
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		fails := make(map[handling]int)
		var steps []step
		for i := range messages {
			steps = append(steps, numbered(i))
			for _, who := range []string{"retries", "stops"} {
				if random.IntN(3) == 0 {
					fails[handling{who, i}] = 1 + random.IntN(4)
				}
			}
		}
		p := newPlay(t, func(_ context.Context, h handling, attempt int) error {
			if attempt > fails[h] {
				return nil
			}
			if h.who == "stops" && (h.n+attempt)%3 == 0 {
				panic(errTold)
			}
			return errTold
		}, steps...)
		p.Api().Close()
		if err := p.Stepper(seed).Run(); err != nil && !errors.Is(err, pool.ErrGaveUp) { // caused by the last message
			t.Fatalf("seed %d: %v", seed, err)
		}
		for who, attempts := range map[string]int{"retries": 3, "stops": 2} {
			var want []int
			for i := range messages {
				for range min(attempts, fails[handling{who, i}]+1) {
					want = append(want, i)
				}
			}
			if got := p.of(who); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s was given\n%v\nwant\n%v", seed, who, got, want)
			}
		}
	}
}

// TestAsking checks requests to handlers that fail: the caller gets the reply of the
// successful attempt, or the error of the last one.
func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		p := newPlay(t, func(ctx context.Context, h handling, attempt int) error {
			switch {
			case h.n == 100+attempt && h.who == "hangs":
				<-forever
			case h.n >= 10 && attempt <= h.n/10 && h.n < 100: // fails as often as the tens digit says
				return errTold
			}
			return nil
		})
		ended := make(chan error)
		go func() { ended <- p.Run(t.Context()) }()
		api := p.Api()
		for _, c := range []struct {
			who  string
			ask  func(context.Context, Query) (Answer, error)
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
			a, err := c.ask(t.Context(), Query{c.n})
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
			for _, letter := range []func(topo.DeadLetter) (Query, bool){
				DeadLetterApiRetriesQuery, DeadLetterApiSkipsQuery, DeadLetterApiStopsQuery, DeadLetterApiHangsQuery,
			} {
				if q, ok := letter(d); ok {
					letters = append(letters, fmt.Sprint(d.Processor, " ", q.N, " ", d.Attempts, " ", EdgeIndex(d.Edge)))
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
		p.faults(t, ProcessorHangs, pool.FaultFigures{Restarts: 2, HealthCheckKills: 1, Abandoned: 1, DeadLetters: 2})
		p.faults(t, ProcessorRetries, pool.FaultFigures{DeadLetters: 1})
		p.faults(t, ProcessorStops, pool.FaultFigures{Restarts: 3, DeadLetters: 1})
	})
}

// TestRepliesToProcessors checks that a processor gets the reply of the successful attempt,
// and no reply if all attempts fail.
func TestRepliesToProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []step
		for _, n := range []int{1, 11, 21, 2} {
			steps = append(steps, func(out *SourceSender) error { out.SendQuery(Query{n}); return nil })
		}
		p := newPlay(t, func(_ context.Context, h handling, attempt int) error {
			if attempt <= h.n/10 && h.who != "answer" && h.who != "morgue" {
				return errTold
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

// TestASourceThatFails checks that on_error: skip lets a source continue after an error, and
// a processor after an error at a tick.
func TestASourceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := func(*SourceSender) error { return errTold }
		p := newPlay(t, func(_ context.Context, h handling, attempt int) error {
			if h.who == "tick" || h.who == "answer" {
				return errTold
			}
			return nil
		}, failing, numbered(2), failing, failing, func(out *SourceSender) error { out.SendQuery(Query{1}); return nil })
		time.AfterFunc(150*time.Minute, p.Api().Close)
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.of("tick"), []int{1, 2}) || !slices.Equal(p.of("stops"), []int{2, 1}) || len(p.of("answer")) != 2 {
			t.Errorf("%v", p.list)
		}
		p.faults(t, ProcessorSource, pool.FaultFigures{Dropped: 2})
		p.faults(t, ProcessorSkips, pool.FaultFigures{Dropped: 2})
	})
}

// TestDeadLetters checks that a dead letter has the original message, even if its handler has
// changed its copy or is still using it.
func TestDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		p := newPlay(t, func(ctx context.Context, h handling, attempt int) error {
			switch {
			case h.who == "hangs" && h.n < 100:
				<-over // then the handler writes to its copy
			case h.who == "retries":
				return errTold
			}
			return nil
		}, numbered(2), numbered(3))
		time.AfterFunc(250*time.Millisecond, func() {
			close(over)
			p.Api().Close()
		})
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range p.letters {
			for _, letter := range []func(topo.DeadLetter) (Plain, bool){DeadLetterSourceRetriesPlain, DeadLetterSourceHangsPlain, DeadLetterSourceStopsPlain} {
				if m, ok := letter(d); ok {
					got = append(got, fmt.Sprint(d.Processor, m.N, d.Attempts))
				}
			}
			for _, letter := range []func(topo.DeadLetter) (Box[string], bool){DeadLetterSourceRetriesBox, DeadLetterSourceHangsBox, DeadLetterSourceStopsBox} {
				if m, ok := letter(d); ok {
					got = append(got, fmt.Sprintf("%s%q%d", d.Processor, m.Of, d.Attempts))
				}
			}
		}
		slices.Sort(got)
		if want := []string{"hangs2 1", `hangs["" "" ""]1`, "retries2 3", `retries["" "" ""]3`}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// TestTheDeadDieAgain checks that a processor for dead letters may fail and is restarted like
// any other.
func TestTheDeadDieAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retried := func(out *SourceSender) error { out.SendPlainToRetries(Plain{1}); return nil }
		p := newPlay(t, func(ctx context.Context, h handling, attempt int) error {
			if h.who == "retries" || h.who == "morgue" && h.n != 2 && h.n < 4 {
				return errTold
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
		p.faults(t, ProcessorMorgue, pool.FaultFigures{Restarts: 2})
	})
}

// TestBlocking checks handler calls longer than the timeout, with and without topo.Alive.
func TestBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, func(ctx context.Context, h handling, attempt int) error {
			if h.who != "waits" {
				return nil
			}
			for range 10 {
				<-time.After(90 * time.Millisecond)
				if h.n != 4 {
					topo.Alive(ctx)
				}
			}
			return nil
		}, numbered(2), numbered(4), numbered(6))
		p.Api().Close()
		begun := time.Now()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begun); d != 1900*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		p.faults(t, ProcessorWaits, pool.FaultFigures{Restarts: 1, HealthCheckKills: 1, Abandoned: 1, Dropped: 1})
		<-time.After(time.Second)
	})
}

// TestFullAndTimed checks that a timed handler may fail because of a full queue.
func TestFullAndTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []step
		for n := range 10 {
			steps = append(steps, numbered(2*n))
		}
		p := newPlay(t, nil, steps...)
		p.Api().Close()
		if err := p.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f := *p.Snapshot().Processors[ProcessorHangs].Faults
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
