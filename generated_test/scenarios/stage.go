package scenarios

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

// Topology has the methods of a generated topology that the scenarios need.
type Topology interface {
	Run(context.Context) error
	Stepper(seed uint64) *pool.Stepper
	Snapshot() pool.Snapshot
}

// Commands has a function for each processor that sends it a command.
type Commands map[string]func(context.Context, Command) error

// Theatre is the environment in which scenarios run.
type Theatre struct {
	// Stage makes a topology whose witness writes into the journal.
	Stage func(*Journal) (Topology, Commands, error)
	// Slack is the maximum deviation of an event from its expected time. Patience is the
	// maximum time to wait for an event without an expected time.
	Slack, Patience time.Duration
	// Abandons says that a hanging call is abandoned, and its goroutine not ended.
	Abandons bool
	// Stepped says that the topology runs under a Stepper.
	Stepped bool
}

// play is a running scenario.
type play struct {
	*testing.T
	Theatre
	*Journal
	topology Topology
	commands Commands
	waited   map[string]int // by text: number of entries that were awaited

	stepper *pool.Stepper
	steps   time.Duration // total time that the stepper's clock was advanced, because handlers must not read it
	cancel  context.CancelFunc
	ended   chan error
}

// begin makes and starts the topology.
func (h Theatre) begin(t *testing.T) *play {
	t.Helper()
	p := &play{T: t, Theatre: h, waited: make(map[string]int)}
	p.Journal = &Journal{now: p.clock, changed: make(chan struct{})}
	var err error
	if p.topology, p.commands, err = h.Stage(p.Journal); err != nil {
		t.Fatal(err)
	}
	if h.Stepped {
		p.stepper = p.topology.Stepper(1)
		hangs := Hangs
		Hangs = func(context.Context) { p.stepper.Hang() }
		t.Cleanup(func() { Hangs = hangs })
	} else {
		ctx, cancel := context.WithCancel(t.Context())
		p.cancel, p.ended = cancel, make(chan error, 1)
		t.Cleanup(cancel)
		go func() { p.ended <- p.topology.Run(ctx) }()
	}
	return p
}

func (p *play) clock() time.Time {
	if p.stepper != nil {
		return time.Time{}.Add(p.steps)
	}
	return time.Now()
}

// tell sends commands and returns the time.
func (p *play) tell(processor string, what ...string) time.Time {
	p.Helper()
	for _, do := range what {
		if err := p.commands[processor](p.Context(), Command{do}); err != nil {
			p.Fatal(err)
		}
	}
	return p.clock()
}

// await waits for the next entry with a text and returns its time.
func (p *play) await(text string) time.Time {
	p.Helper()
	p.waited[text]++
	return p.until(text, p.waited[text])
}

// until waits for the n-th entry with a text.
func (p *play) until(text string, n int) time.Time {
	p.Helper()
	deadline := time.After(p.Patience)
	for until := p.clock().Add(p.Patience); ; {
		e, ok, changed := p.find(text, n)
		switch {
		case ok:
			return e.At
		case p.stepper != nil:
			if p.pass(time.Millisecond); p.clock().After(until) {
				p.Fatalf("%q was not written, but %q", text, p.all())
			}
			continue
		}
		select {
		case <-changed:
		case err := <-p.ended:
			p.Fatalf("Run has ended: %v", err)
		case <-deadline:
			p.Fatalf("%q was not written, but %q", text, p.all())
		}
	}
}

// pass lets time pass.
func (p *play) pass(d time.Duration) {
	p.Helper()
	if p.stepper == nil {
		<-time.After(d)
		return
	}
	for until := p.steps + d; p.steps < until; {
		p.steps += time.Millisecond
		if err := p.stepper.Advance(time.Millisecond); err != nil {
			p.Fatal(err)
		}
	}
}

// stop ends the topology like an interrupt, and returns the result of Run.
func (p *play) stop() error {
	if p.stepper == nil {
		p.cancel()
		return <-p.ended
	}
	p.stepper.Stop()
	before := p.stepper.Now()
	err := p.stepper.Run()
	p.steps += p.stepper.Now().Sub(before)
	return err
}

// took checks the time between two events. Only under a Stepper it checks that the second
// event was not late, because a busy host may start a process late.
func (p *play) took(from, to time.Time, want time.Duration) {
	p.Helper()
	if d := to.Sub(from); d < want-p.Slack || p.stepper != nil && d > want+p.Slack {
		p.Errorf("it took %v, want %v", d, want)
	}
}

// faults checks the fault counters of a processor.
func (p *play) faults(processor string, want pool.FaultFigures) {
	p.Helper()
	for _, f := range p.topology.Snapshot().Processors {
		if f.Name == processor && *f.Faults != want {
			p.Errorf("%s has %+v\nwant %+v", processor, *f.Faults, want)
		}
	}
}

func (p *play) all() []string { return p.texts(func(string) bool { return true }) }

// tale checks the entries about a processor in the journal.
func (p *play) tale(processor string, want ...string) {
	p.Helper()
	got := p.texts(func(s string) bool {
		return strings.HasPrefix(s, processor+":") || s == "restarted: "+processor || strings.HasPrefix(s, "closed: "+processor+" ->") || strings.HasPrefix(s, "recovered: "+processor+" ->")
	})
	if !slices.Equal(got, want) {
		p.Errorf("%q\nwant %q", got, want)
	}
}
