package supervise

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// TestUnknownChild: a child that the topology does not have is not supervised, and is in
// no group.
func TestUnknownChild(t *testing.T) {
	spec := Spec{
		Processors: []Processor{{Name: "a", Instances: 1}, {Name: "b", Instances: -1}},
		Groups:     []Group{{Name: "g", Processors: []int{-1, 7, 0}, Strategy: Strategy(9), Intensity: 1, Period: time.Second}},
	}
	for _, id := range []piper.Child{{Processor: -1}, {Processor: 2}, {Processor: 1}, {Instance: -1}, {Instance: 1}} {
		for kind := range piper.ChildInputsDone + 2 { // including an unknown kind
			effects := New(spec).Step(0, piper.ChildEvent{Kind: kind, Child: id, Err: errBoom})
			switch kind {
			case piper.ChildFailed, piper.ChildHung, piper.ChildNotStarted:
				if len(effects) != 1 || effects[0].Kind != piper.EffectEnd || effects[0].Err != errBoom {
					t.Errorf("%v, %d: %+v", id, kind, effects)
				}
			case piper.ChildEnded:
				if len(effects) != 1 || effects[0].Kind != piper.EffectDone {
					t.Errorf("%v, %d: %+v", id, kind, effects)
				}
			default:
				if len(effects) != 0 {
					t.Errorf("%v, %d: %+v", id, kind, effects)
				}
			}
		}
	}
	s := New(spec)
	if e := s.Step(0, piper.ChildEvent{Kind: piper.ChildFailed, Err: errBoom}); len(e) != 1 || e[0].Kind != piper.EffectGiveUp {
		t.Errorf("%+v", e)
	}
	var in Inputs
	if first, all := in.Close(0); first || all || in.State(0) != Closed || in.State(-1) != Closed {
		t.Error("want no inputs")
	}
}

// TestSeedIsDrawn: without a seed, the jitter of two supervisors differs.
func TestSeedIsDrawn(t *testing.T) {
	delay := func(seeds ...uint64) time.Duration {
		s := New(Spec{Processors: []Processor{{Instances: 1, Supervised: true, Policy: Always, Delay: 1 << 60, Jitter: 1}}})
		for _, seed := range seeds {
			s.Seed(seed)
		}
		return s.Step(0, piper.ChildEvent{Kind: piper.ChildEnded})[0].Delay
	}
	a, b := delay(), delay()
	c, d := delay(5), delay(5)
	if a == b || c != d {
		t.Error("without Seed the seed must be random, and Seed must set it", a, b, c, d)
	}
}

// TestDelayEndsBeforeTime: the end of a delay does not overflow.
func TestDelayEndsBeforeTime(t *testing.T) {
	s := New(Spec{Processors: []Processor{{Instances: 1, Supervised: true, Policy: Always, Delay: never}}})
	const now = time.Hour
	if f := s.Step(now, piper.ChildEvent{Kind: piper.ChildEnded})[0]; f.Kind != piper.EffectWait || now+f.Delay != never {
		t.Errorf("%+v", f)
	}
}

// TestErrorsWrapNoNil: errors unwrap to no nil errors, also after a clean end.
func TestErrorsWrapNoNil(t *testing.T) {
	for _, err := range []error{&limitError{}, &limitError{cause: errBoom}, &intensityError{}, &intensityError{cause: errBoom}} {
		all := err.(interface{ Unwrap() []error }).Unwrap()
		if slices.Contains(all, nil) || errors.Is(err, errBoom) != (len(all) == 2) {
			t.Error(err, "wraps", all)
		}
	}
}
