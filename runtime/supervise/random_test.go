package supervise

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"pgregory.net/rapid"
)

var errBoom = errors.New("boom")

// part is what an observer knows of a child who sees the events and the effects,
// and nothing else.
type part struct {
	id         piper.Child
	policy     Policy
	position   int // in the group
	up         bool
	order      piper.ChildEffectKind // what it has been told to, where ordered
	ordered    bool
	failed     bool // how it went down
	over       bool // EffectDone or EffectGiveUp
	done       bool // the former
	ended      bool // it said so, and lives
	draining   bool // it said so, and was told nothing since
	inputsDone bool
}

// observer drives a Supervisor as any pool might, and holds it to its guarantees.
type observer struct {
	s        *Supervisor
	strategy Strategy
	grouped  bool
	parts    []*part
	now      time.Duration
	ended    bool
}

// step tells of an event, and looks at what is answered.
func (o *observer) step(t *rapid.T, kind piper.ChildEventKind, p *part) {
	e := piper.ChildEvent{Kind: kind}
	if p != nil {
		e.Child = p.id
	}
	if kind == piper.ChildFailed || kind == piper.ChildHung || kind == piper.ChildNotStarted {
		e.Err = errBoom
	}
	for _, f := range o.s.Step(o.now, e) {
		if err := o.saw(f); err != nil {
			t.Fatalf("%+v was answered by %+v: %v", e, f, err)
		}
	}
}

// saw checks an effect.
func (o *observer) saw(f piper.ChildEffect) error {
	if o.ended {
		return errors.New("the topology has ended")
	}
	if f.Kind == piper.EffectEnd {
		o.ended = true
		return nil
	}
	i := slices.IndexFunc(o.parts, func(p *part) bool { return p.id == f.Child })
	if i < 0 {
		return errors.New("nobody")
	}
	p := o.parts[i]
	switch f.Kind {
	case piper.EffectStart, piper.EffectWait:
		switch {
		case p.up || p.ordered:
			return errors.New("it is not down")
		case p.inputsDone:
			return errors.New("it is not to be started any more")
		case p.policy == Never:
			return errors.New("it is never to be started")
		}
		p.order, p.ordered, p.over, p.ended, p.draining = f.Kind, true, false, false, false
		if f.Kind == piper.EffectStart {
			return o.mayStart(p)
		}
	case piper.EffectStop:
		switch {
		case p.ordered && p.order != piper.EffectStart, !p.ordered && !p.up:
			return errors.New("it does not run")
		case !o.grouped || o.strategy == OneForOne:
			return errors.New("nobody is to stop for another")
		case p.inputsDone:
			return errors.New("it would not come back")
		}
		for _, other := range o.parts {
			if other.ordered && other.order == piper.EffectStop {
				return fmt.Errorf("%v stops already", other.id)
			}
		}
		p.order, p.ordered, p.over, p.ended, p.draining = f.Kind, true, false, false, false
	case piper.EffectDone, piper.EffectGiveUp:
		if p.up || p.ordered && p.order != piper.EffectWait || p.over {
			return errors.New("it is not down")
		}
		// One that was to be started and is not any more is forgiven its failure.
		forgiven := p.failed && p.inputsDone
		if gaveUp := f.Kind == piper.EffectGiveUp; !errors.Is(f.Err, ErrLimit) && p.failed != gaveUp && (gaveUp || !forgiven) {
			return errors.New("that is not how it ended")
		}
		p.over, p.done, p.ordered = true, f.Kind == piper.EffectDone, false
		if p.draining && p.done {
			p.up, p.ended = true, true
		}
	}
	return nil
}

// mayStart checks that those behind a child have stopped, that it is the first,
// and that nothing else is under way.
func (o *observer) mayStart(p *part) error {
	if !o.grouped || o.strategy == OneForOne {
		return nil
	}
	for _, other := range o.parts {
		switch {
		case other == p || other.inputsDone:
		case other.ordered:
			return fmt.Errorf("%v has an order", other.id)
		case other.position > p.position && other.up:
			return fmt.Errorf("%v runs", other.id)
		}
	}
	return nil
}

// happens lets something happen that may happen to p.
func (o *observer) happens(t *rapid.T, p *part, what int) {
	switch {
	case p.ordered && p.order == piper.EffectWait && what < 4:
		p.ordered = false
		o.step(t, piper.ChildDue, p)
	case p.ordered && p.order == piper.EffectStart && what < 4:
		p.ordered, p.up = false, true
		o.step(t, piper.ChildStarted, p)
	case p.ordered && p.order == piper.EffectStop && what < 4:
		p.ordered, p.up, p.failed = false, false, false
		o.step(t, piper.ChildStopped, p)
	case (p.up || p.ordered && p.order != piper.EffectWait) && what < 7:
		kind := [...]piper.ChildEventKind{piper.ChildFailed, piper.ChildEnded, piper.ChildHung, piper.ChildNotStarted}[what%4]
		if p.ended && kind == piper.ChildEnded {
			return // once is enough
		}
		p.failed = kind != piper.ChildEnded
		if p.ordered && p.order == piper.EffectStop || o.stops(p) {
			p.failed = false // it was to stop
		}
		ends := kind == piper.ChildEnded && !(p.ordered && p.order == piper.EffectStop)
		p.ordered, p.up, p.over, p.done, p.ended = false, false, false, false, false
		p.draining = ends
		o.step(t, kind, p)
	case what == 7:
		p.inputsDone = true
		o.step(t, piper.ChildInputsDone, p)
	case what == 8: // out of place
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

// stops reports whether p, which runs, is to stop because of another: the group
// has begun to stop others, behind which p stands in line.
func (o *observer) stops(p *part) bool {
	return o.grouped && o.s.groups[0].stops(o.s.child(p.id))
}

// TestRandomEvents: whatever happens in whatever order, nobody is started twice, or
// after the end, or before its turn; and when all that was ordered has come about
// each child runs, or was let go.
func TestRandomEvents(t *testing.T) {
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
				o.parts = append(o.parts, &part{id: piper.Child{Processor: i, Instance: j}, policy: p.Policy, position: len(o.parts), up: true})
			}
			g.Processors = append(g.Processors, i)
			spec.Processors = append(spec.Processors, p)
		}
		if o.grouped {
			spec.Groups = []Group{g}
		}
		spec.Seed = 1
		o.s = New(spec)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 100).Draw(t, "what"); {
			case what < 10:
				o.now++
			default:
				o.happens(t, o.parts[rapid.IntRange(0, len(o.parts)-1).Draw(t, "who")], what%9)
			}
		}
		o.settles(t)
	})
}

// settles does all that was ordered.
func (o *observer) settles(t *rapid.T) {
	for busy := true; busy && !o.ended; {
		busy = false
		for _, p := range o.parts {
			if p.ordered {
				busy = true
				o.happens(t, p, 0)
			}
		}
	}
	for _, p := range o.parts {
		if !o.ended && !p.up && !p.over {
			t.Fatalf("%v was forgotten", p.id)
		}
	}
}

// TestRandomBudgets compares each decision about an instance by itself with one
// that is made from the whole of its history.
func TestRandomBudgets(t *testing.T) {
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
					t.Fatalf("%+v, not %v, after %v", f, delay, restarts)
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

// delayOf is the longest delay before the k-th restart, by numbers that do not
// overflow.
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

// TestBackoff: the examples of dora's document, and the ends of what there is.
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
			t.Errorf("%v, at most %v, the %dth time: %v, not %v", c.delay, c.maxDelay, c.k, got, c.want)
		}
	}
}

// TestJitter: a delay is drawn from all between d*(1-jitter) and d.
func TestJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Processor{Delay: time.Duration(rapid.Int64().Draw(t, "delay")), Jitter: rapid.Float64().Draw(t, "jitter")}
		chance := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "chance")
		d := delayOf(Processor{Delay: max(p.Delay, 0)}, 1)
		got := p.backoff(1, func() float64 { return chance })
		least := float64(d) * (1 - max(0, min(p.Jitter, 1)))
		if got < 0 || got > d || float64(got) < least-1-float64(d)/(1<<50) {
			t.Fatalf("%v of %v", got, d)
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
