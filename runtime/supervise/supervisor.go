package supervise

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// Supervisor decides what happens to the instances of a topology that end. It is not safe
// for concurrent use.
type Supervisor struct {
	children [][]child // by processor and instance
	groups   []group
	random   *rand.Rand
	ended    bool // the topology ends: events have no effect any more

	// Of the current step:
	now     time.Duration
	effects []piper.ChildEffect
}

var _ piper.Supervisor = (*Supervisor)(nil)

// New returns a Supervisor of a topology whose instances are about to start for the first
// time. Groups ignore processors that do not exist or that an earlier group has.
func New(s Spec) *Supervisor {
	v := &Supervisor{
		children: make([][]child, len(s.Processors)),
		groups:   make([]group, len(s.Groups)),
	}
	v.Seed(rand.Uint64())
	for i, p := range s.Processors {
		v.children[i] = make([]child, max(p.Instances, 0))
		for j := range v.children[i] {
			v.children[i][j] = child{Processor: &p, id: piper.Child{Processor: i, Instance: j}}
		}
	}
	for i := range s.Groups {
		v.groups[i].init(s.Groups[i], v.children)
	}
	return v
}

// Seed implements [piper.Supervisor]. Without it, the seed of the jitter is random.
func (s *Supervisor) Seed(seed uint64) { s.random = rand.New(rand.NewPCG(seed, 0)) }

// Step implements [piper.Supervisor].
func (s *Supervisor) Step(now time.Duration, e piper.ChildEvent) []piper.ChildEffect {
	if s.ended {
		return nil
	}
	s.now, s.effects = now, nil
	c := s.child(e.Child)
	switch e.Kind {
	case piper.ChildFailed, piper.ChildHung, piper.ChildNotStarted:
		if e.Err == nil && !(e.Kind == piper.ChildNotStarted && c.inputsDone) {
			e.Err = errUnknown
		}
		s.exited(c, e.Err, false)
	case piper.ChildEnded:
		s.exited(c, nil, true)
	case piper.ChildStopped:
		if c.state == stopping {
			c.draining = false
			s.stopped(c)
		}
	case piper.ChildNotStopped:
		c.inputsDone = true // before ChildInputsDone, so that it does not get the order again
		if c.state == stopping {
			c.state = running
		}
	case piper.ChildStarted:
		if c.state == starting {
			c.state = running
		}
	case piper.ChildDue:
		if c.state == waiting {
			c.state = down
		}
	case piper.ChildInputsDone:
		c.inputsDone = true
		s.recheck(c)
	}
	s.proceed(c)
	return s.effects
}

// child returns the child with that id. For an id that the topology does not have, it
// returns a new child that is not supervised and not stored.
func (s *Supervisor) child(id piper.Child) *child {
	if p := id.Processor; p >= 0 && p < len(s.children) {
		if i := id.Instance; i >= 0 && i < len(s.children[p]) {
			return &s.children[p][i]
		}
	}
	return &child{Processor: &Processor{}, id: id}
}

// exited handles the end of a child: a failure with cause, or a clean end if cause is
// nil. ended is true if the child reported its end itself, so that it may still handle
// messages.
func (s *Supervisor) exited(c *child, cause error, ended bool) {
	switch {
	case c.state == done && cause == nil: // reported before
	case c.state == stopping, c.state.alive() && c.group.stops(c):
		c.draining = ended && c.state != stopping // a child that is stopping has an order
		s.stopped(c)                              // the cause does not matter: the child would have been stopped anyway
	case c.state.alive():
		c.cause = cause
		c.draining = ended
		s.decide(c)
	case cause != nil:
		c.draining = false
	}
}

// stopped handles the end of a child that was stopped, or would have been stopped, for the
// restart of another child. It will be started with the others of its group.
func (s *Supervisor) stopped(c *child) {
	c.state, c.cause = down, nil
	if c.temporary() || c.inputsDone {
		s.retire(c)
	}
}

// decide decides about a child that has ended, in the order of dora's fault tolerance.
func (s *Supervisor) decide(c *child) {
	// Policy.
	switch {
	case c.cause != nil && !c.supervised():
		s.end(c.cause)
		return
	case !c.restarts():
		s.retire(c)
		return
	}
	// Disabled.
	if c.inputsDone {
		s.retire(c)
		return
	}
	// Window.
	if c.Window > 0 && s.now-c.since > c.Window {
		c.count = 0
	}
	// Limit.
	if c.MaxRestarts > 0 && c.count >= c.MaxRestarts {
		s.giveUp(c, &limitError{c.Name, c.id.Instance, c.count, c.Window, c.cause})
		return
	}
	if !c.group.mayRestart(s.now) {
		s.end(&intensityError{c.group.Name, c.group.Intensity, c.group.Period, c.cause})
		return
	}
	// Delay.
	if c.count == 0 {
		c.since = s.now
	}
	c.count++
	c.state = down
	if d := min(c.backoff(c.count, s.random.Float64), math.MaxInt64-s.now); d > 0 {
		c.state, c.draining = waiting, false
		s.effects = append(s.effects, piper.ChildEffect{Kind: piper.EffectWait, Child: c.id, Delay: d})
	}
	c.group.restart(c)
}

// proceed gives the orders that follow from an event of c.
func (s *Supervisor) proceed(c *child) {
	switch {
	case s.ended:
	case c.group != nil && c.group.Strategy != OneForOne:
		s.proceedGroup(c.group)
	case c.state == down:
		s.start(c)
	}
}

// start starts a child that is down, unless its inputs are done.
func (s *Supervisor) start(c *child) {
	if c.inputsDone {
		c.cause = nil // the policy had decided to restart it, so the failure does not count
		s.retire(c)
		return
	}
	c.state, c.draining = starting, false
	s.effects = append(s.effects, piper.ChildEffect{Kind: piper.EffectStart, Child: c.id})
}

// recheck retires a child that waits for its start, if it must not be started any more.
func (s *Supervisor) recheck(c *child) {
	if c.state == waiting || c.state == down {
		s.start(c)
	}
}

// retire reports that a child that has ended is not started again.
func (s *Supervisor) retire(c *child) {
	if c.cause != nil {
		s.giveUp(c, c.cause)
		return
	}
	if c.state.alive() || c.draining {
		c.state = done
	} else {
		c.state = terminated
	}
	s.effects = append(s.effects, piper.ChildEffect{Kind: piper.EffectDone, Child: c.id})
}

func (s *Supervisor) giveUp(c *child, err error) {
	c.state = terminated
	s.effects = append(s.effects, piper.ChildEffect{Kind: piper.EffectGiveUp, Child: c.id, Err: err})
}

func (s *Supervisor) end(err error) {
	s.ended = true
	s.effects = append(s.effects, piper.ChildEffect{Kind: piper.EffectEnd, Err: err})
}
