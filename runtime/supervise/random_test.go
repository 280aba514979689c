package supervise

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"pgregory.net/rapid"
)

var errBoom = errors.New("boom")

// childView is what an observer of events and effects knows about a child.
type childView struct {
	id         piper.Child
	policy     Policy
	position   int // in the group
	up         bool
	order      piper.ChildEffectKind // the order in progress, if ordered
	ordered    bool
	failed     bool // whether it went down by a failure
	over       bool // EffectDone or EffectGiveUp was given
	done       bool // EffectDone was given
	ended      bool // it reported its end, and is alive
	draining   bool // it reported its end, and got no order since
	inputsDone bool
}

// observer drives a Supervisor as any pool might, and checks its guarantees.
type observer struct {
	s        *Supervisor
	strategy Strategy
	grouped  bool
	children []*childView
	now      time.Duration
	ended    bool
}

// step passes an event to the Supervisor and checks the effects.
func (o *observer) step(t *rapid.T, kind piper.ChildEventKind, p *childView) {
	e := piper.ChildEvent{Kind: kind}
	if p != nil {
		e.Child = p.id
	}
	if kind == piper.ChildFailed || kind == piper.ChildHung || kind == piper.ChildNotStarted {
		e.Err = errBoom
	}
	for _, f := range o.s.Step(o.now, e) {
		if err := o.checkEffect(f); err != nil {
			t.Fatalf("%+v: invalid effect %+v: %v", e, f, err)
		}
	}
}

// checkEffect checks an effect.
func (o *observer) checkEffect(f piper.ChildEffect) error {
	if o.ended {
		return errors.New("the topology has ended")
	}
	if f.Kind == piper.EffectEnd {
		o.ended = true
		return nil
	}
	i := slices.IndexFunc(o.children, func(p *childView) bool { return p.id == f.Child })
	if i < 0 {
		return errors.New("unknown child")
	}
	p := o.children[i]
	switch f.Kind {
	case piper.EffectStart, piper.EffectWait:
		switch {
		case p.up || p.ordered:
			return errors.New("the child is not down")
		case p.inputsDone:
			return errors.New("the child must not be started any more")
		case p.policy == Never:
			return errors.New("the child must never be started")
		}
		p.order, p.ordered, p.over, p.ended, p.draining = f.Kind, true, false, false, false
		if f.Kind == piper.EffectStart {
			return o.mayStart(p)
		}
	case piper.EffectStop:
		switch {
		case p.ordered && p.order != piper.EffectStart, !p.ordered && !p.up:
			return errors.New("the child does not run")
		case !o.grouped || o.strategy == OneForOne:
			return errors.New("no child must stop for the restart of another")
		case p.inputsDone:
			return errors.New("the child would not be started again")
		}
		for _, other := range o.children {
			if other.ordered && other.order == piper.EffectStop {
				return fmt.Errorf("%v is being stopped already", other.id)
			}
		}
		p.order, p.ordered, p.over, p.ended, p.draining = f.Kind, true, false, false, false
	case piper.EffectDone, piper.EffectGiveUp:
		if p.up || p.ordered && p.order != piper.EffectWait || p.over {
			return errors.New("the child is not down")
		}
		// A failure does not count if the child was to be started but must not be any more.
		forgiven := p.failed && p.inputsDone
		if gaveUp := f.Kind == piper.EffectGiveUp; !errors.Is(f.Err, ErrLimit) && p.failed != gaveUp && (gaveUp || !forgiven) {
			return errors.New("the effect does not match how the child ended")
		}
		p.over, p.done, p.ordered = true, f.Kind == piper.EffectDone, false
		if p.draining && p.done {
			p.up, p.ended = true, true
		}
	}
	return nil
}

// mayStart checks that the children after p have stopped, that p is the first that is
// down, and that no order is in progress.
func (o *observer) mayStart(p *childView) error {
	if !o.grouped || o.strategy == OneForOne {
		return nil
	}
	for _, other := range o.children {
		switch {
		case other == p || other.inputsDone:
		case other.ordered:
			return fmt.Errorf("%v has an order in progress", other.id)
		case other.position > p.position && other.up:
			return fmt.Errorf("%v runs", other.id)
		}
	}
	return nil
}

// report lets p report an event that is possible now.
func (o *observer) report(t *rapid.T, p *childView, what int) {
	switch {
	case p.ordered && p.order == piper.EffectWait && what < 4:
		p.ordered = false
		o.step(t, piper.ChildDue, p)
	case p.ordered && p.order == piper.EffectStart && what < 4:
		p.ordered, p.up = false, true
		o.step(t, piper.ChildStarted, p)
	case p.ordered && p.order == piper.EffectStop && what < 4:
		if what == 3 { // its inputs are done, and it runs on
			p.ordered, p.up, p.inputsDone = false, true, true
			o.step(t, piper.ChildNotStopped, p)
			return
		}
		p.ordered, p.up, p.failed = false, false, false
		o.step(t, piper.ChildStopped, p)
	case (p.up || p.ordered && p.order != piper.EffectWait) && what < 7:
		kind := [...]piper.ChildEventKind{piper.ChildFailed, piper.ChildEnded, piper.ChildHung, piper.ChildNotStarted}[what%4]
		if p.ended && kind == piper.ChildEnded {
			return // it has reported its end already
		}
		p.failed = kind != piper.ChildEnded
		if p.ordered && p.order == piper.EffectStop || o.stops(p) {
			p.failed = false // it was to be stopped
		}
		ends := kind == piper.ChildEnded && !(p.ordered && p.order == piper.EffectStop)
		p.ordered, p.up, p.over, p.done, p.ended = false, false, false, false, false
		p.draining = ends
		o.step(t, kind, p)
	case what == 7:
		p.inputsDone = true
		o.step(t, piper.ChildInputsDone, p)
	case what == 8: // an event that does not fit
		if !p.ordered {
			o.step(t, piper.ChildDue, p)
			o.step(t, piper.ChildStarted, p)
			o.step(t, piper.ChildStopped, p)
		}
		if !p.up && !p.ordered {
			p.draining = false
			o.step(t, piper.ChildFailed, p)
			o.step(t, piper.ChildEnded, p)
		}
	}
}

// stops reports whether p, which runs, will be stopped for another child: the group has
// begun to stop children, and has not reached p yet.
func (o *observer) stops(p *childView) bool {
	return o.grouped && o.s.groups[0].stops(o.s.child(p.id))
}

// TestRandomEvents: for random events in random order, no child is started twice, after
// it is done, or before it is next. After all orders are executed, each child runs or is
// done.
func TestRandomEvents(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		o := &observer{strategy: Strategy(rapid.IntRange(0, 2).Draw(t, "strategy")), grouped: rapid.Bool().Draw(t, "grouped")}
		var spec Spec
		g := Group{Name: "g", Strategy: o.strategy, Intensity: 20, Period: time.Duration(rapid.IntRange(0, 3).Draw(t, "period"))}
		for i := range rapid.IntRange(1, 4).Draw(t, "processors") {
			p := Processor{
				Name: fmt.Sprint(i), Supervised: rapid.IntRange(0, 9).Draw(t, "supervised") > 0,
				Instances: rapid.IntRange(1, 2).Draw(t, "instances"), Policy: Policy(rapid.IntRange(0, 2).Draw(t, "policy")),
				Delay: time.Duration(rapid.IntRange(0, 2).Draw(t, "delay")), MaxRestarts: rapid.IntRange(0, 3).Draw(t, "max"),
				Window: time.Duration(rapid.IntRange(0, 3).Draw(t, "window")), Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
			}
			for j := range p.Instances {
				o.children = append(o.children, &childView{id: piper.Child{Processor: i, Instance: j}, policy: p.Policy, position: len(o.children), up: true})
			}
			g.Processors = append(g.Processors, i)
			spec.Processors = append(spec.Processors, p)
		}
		if o.grouped {
			spec.Groups = []Group{g}
		}
		o.s = New(spec)
		o.s.Seed(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 100).Draw(t, "what"); {
			case what < 10:
				o.now++
			default:
				o.report(t, o.children[rapid.IntRange(0, len(o.children)-1).Draw(t, "who")], what%9)
			}
		}
		o.finishOrders(t)
	})
}

// finishOrders executes all orders.
func (o *observer) finishOrders(t *rapid.T) {
	for busy := true; busy && !o.ended; {
		busy = false
		for _, p := range o.children {
			if p.ordered {
				busy = true
				o.report(t, p, 0)
			}
		}
	}
	for _, p := range o.children {
		if !o.ended && !p.up && !p.over {
			t.Fatalf("%v is down and will not be started", p.id)
		}
	}
}

// TestRandomBudgets compares each decision about an instance that is in no group with one
// that is computed from the whole history.
func TestRandomBudgets(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		p := Processor{
			Name: "p", Instances: 1, Supervised: true, Policy: Always,
			MaxRestarts: rapid.IntRange(0, 4).Draw(t, "max"),
			Delay:       time.Duration(rapid.Int64Range(0, 5).Draw(t, "delay")),
			MaxDelay:    time.Duration(rapid.Int64Range(0, 40).Draw(t, "max delay")),
			Window:      time.Duration(rapid.Int64Range(0, 50).Draw(t, "window")),
		}
		s := New(Spec{Processors: []Processor{p}})
		now, restarts := time.Duration(0), []time.Duration(nil) // since the window began
		for range 30 {
			now += time.Duration(rapid.Int64Range(0, 40).Draw(t, "runs for"))
			effects := s.Step(now, piper.ChildEvent{Kind: piper.ChildFailed, Err: errBoom})
			if len(effects) != 1 {
				t.Fatal(effects)
			}
			if p.Window > 0 && len(restarts) > 0 && restarts[0]+p.Window < now {
				restarts = nil
			}
			if p.MaxRestarts > 0 && len(restarts) == p.MaxRestarts {
				if f := effects[0]; f.Kind != piper.EffectGiveUp || !errors.Is(f.Err, ErrLimit) || !errors.Is(f.Err, errBoom) {
					t.Fatalf("%+v after %v", f, restarts)
				}
				return
			}
			restarts = append(restarts, now)
			if delay := delayOf(p, len(restarts)); delay > 0 {
				if f := effects[0]; f.Kind != piper.EffectWait || f.Delay != delay {
					t.Fatalf("got %+v, want delay %v, after %v", f, delay, restarts)
				}
				now += delay
				effects = s.Step(now, piper.ChildEvent{Kind: piper.ChildDue})
			}
			if len(effects) != 1 || effects[0].Kind != piper.EffectStart {
				t.Fatal(effects)
			}
			s.Step(now, piper.ChildEvent{Kind: piper.ChildStarted})
		}
	})
}

// delayOf returns the longest delay before the k-th restart, computed with numbers that
// do not overflow.
func delayOf(p Processor, k int) time.Duration {
	d := new(big.Int).Lsh(big.NewInt(int64(p.Delay)), uint(min(k-1, 16)))
	if p.MaxDelay > 0 && d.Cmp(big.NewInt(int64(p.MaxDelay))) > 0 {
		return p.MaxDelay
	}
	if !d.IsInt64() {
		return math.MaxInt64
	}
	return time.Duration(d.Int64())
}

// TestBackoff: the examples of dora's documentation, and extreme values.
func TestBackoff(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		delay, maxDelay time.Duration
		k               int
		want            time.Duration
	}{
		{time.Second, 10 * time.Second, 1, time.Second},
		{time.Second, 10 * time.Second, 2, 2 * time.Second},
		{time.Second, 10 * time.Second, 3, 4 * time.Second},
		{time.Second, 10 * time.Second, 4, 8 * time.Second},
		{time.Second, 10 * time.Second, 5, 10 * time.Second},
		{time.Second, 10 * time.Second, 6, 10 * time.Second},
		{10 * time.Second, 10 * time.Second, 99, 10 * time.Second},
		{time.Second, 0, 16, 32768 * time.Second},
		{time.Second, 0, 17, 65536 * time.Second},
		{time.Second, 0, 18, 65536 * time.Second},
		{time.Second, 0, math.MaxInt, 65536 * time.Second},
		{10 * time.Second, time.Second, 1, time.Second},
		{0, time.Second, 9, 0},
		{-time.Second, time.Second, 9, 0},
		{longest, 0, 1, longest},
		{longest, 0, 2, longest},
		{longest >> 16, 0, 17, longest >> 16 << 16},
		{longest>>16 + 1, 0, 17, longest},
		{longest, time.Hour, 17, time.Hour},
	} {
		p := Processor{Delay: c.delay, MaxDelay: c.maxDelay}
		if got := p.backoff(c.k, nil); got != c.want {
			t.Errorf("delay %v, at most %v, restart %d: got %v, want %v", c.delay, c.maxDelay, c.k, got, c.want)
		}
	}
}

// TestJitter: a delay is drawn from d*(1-jitter) to d.
func TestJitter(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		p := Processor{Delay: time.Duration(rapid.Int64().Draw(t, "delay")), Jitter: rapid.Float64().Draw(t, "jitter")}
		chance := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "chance")
		d := delayOf(Processor{Delay: max(p.Delay, 0)}, 1)
		got := p.backoff(1, func() float64 { return chance })
		least := float64(d) * (1 - max(0, min(p.Jitter, 1)))
		if got < 0 || got > d || float64(got) < least-1-float64(d)/(1<<50) {
			t.Fatalf("got %v for delay %v", got, d)
		}
	})
	p := Processor{Delay: 1000, Jitter: 0.25}
	if got := p.backoff(1, func() float64 { return 0.5 }); got != 875 {
		t.Error(got)
	}
	p.Jitter = math.NaN()
	if got := p.backoff(1, nil); got != 1000 {
		t.Error(got)
	}
}
