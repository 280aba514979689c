package scenarios

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/pool"
)

// Topology is what the scenarios need of a generated one.
type Topology interface {
	Run(context.Context) error
	Stepper(seed uint64) *pool.Stepper
	Snapshot() pool.Snapshot
}

// Commands send a command to each processor, by its name.
type Commands map[string]func(context.Context, Command) error

// Theatre is where scenarios are played.
type Theatre struct {
	// Stage makes a topology whose witness writes into the journal.
	Stage func(*Journal) (Topology, Commands, error)
	// Slack is how far from its time something may come, and Patience how long may
	// pass until something comes that has no time of its own.
	Slack, Patience time.Duration
	// Abandons: what hangs is not ended, but left alone.
	Abandons bool
	// Stepped: the topology runs under a Stepper.
	Stepped bool
}

// play is a scenario in the playing.
type play struct {
	*testing.T
	Theatre
	*Journal
	topology Topology
	commands Commands
	waited   map[string]int // how often each text was waited for

	stepper *pool.Stepper
	steps   time.Duration // by which the stepper's clock was moved on; a handler must not ask it
	cancel  context.CancelFunc
	ended   chan error
}

// begin raises the curtain.
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

// tell gives a command and returns when.
func (p *play) tell(processor string, what ...string) time.Time {
	p.Helper()
	for _, do := range what {
		if err := p.commands[processor](p.Context(), Command{do}); err != nil {
			p.Fatal(err)
		}
	}
	return p.clock()
}

// await waits for the next entry with a text and returns when it was written.
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

// stop ends the topology as an interrupt does, and returns what Run does.
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

// took checks that something came a time after something else. Only the stepper's clock
// says that it did not come late: a busy machine starts a process when it can.
func (p *play) took(from, to time.Time, want time.Duration) {
	p.Helper()
	if d := to.Sub(from); d < want-p.Slack || p.stepper != nil && d > want+p.Slack {
		p.Errorf("it took %v, want %v", d, want)
	}
}

// faults checks what is counted of a processor.
func (p *play) faults(processor string, want pool.FaultFigures) {
	p.Helper()
	for _, f := range p.topology.Snapshot().Processors {
		if f.Name == processor && *f.Faults != want {
			p.Errorf("%s has %+v\nwant %+v", processor, *f.Faults, want)
		}
	}
}

func (p *play) all() []string { return p.texts(func(string) bool { return true }) }

// tale checks what the witness has written about a processor.
func (p *play) tale(processor string, want ...string) {
	p.Helper()
	got := p.texts(func(s string) bool {
		return strings.HasPrefix(s, processor+":") || s == "restarted: "+processor || strings.HasPrefix(s, "closed: "+processor+" ->") || strings.HasPrefix(s, "recovered: "+processor+" ->")
	})
	if !slices.Equal(got, want) {
		p.Errorf("%q\nwant %q", got, want)
	}
}
