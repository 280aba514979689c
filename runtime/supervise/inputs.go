package supervise

import (
	"math"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// Input says what one input of a processor has.
type Input struct {
	// Timeout: the input breaks when nothing came for that long. 0: never.
	Timeout time.Duration
	// ArmAtStart: the timeout begins when the instance does. Else it begins with the
	// first message, so that a sender that is slow to start breaks nothing.
	ArmAtStart bool
}

// State is that of an input.
type State uint8

const (
	Waiting State = iota // nothing came yet
	Open                 // something came, and not too long ago
	Broken               // nothing came for too long; the next message opens it again
	Closed               // nothing will come any more
)

func (s State) String() string {
	if s > Closed {
		return "unknown"
	}
	return [...]string{"waiting", "open", "broken", "closed"}[s]
}

const never = time.Duration(math.MaxInt64)

// Inputs is the circuit breaker of the inputs of one instance, as in dora's fault
// tolerance. It is used in the turns of that instance and needs no lock. Times
// are those since the beginning of the topology. The zero value has no inputs.
type Inputs struct {
	inputs []input
	broken []int // what Expire returns
	closed int   // how many are Closed
}

type input struct {
	timeout  time.Duration
	deadline time.Duration // never: none
	atStart  bool
	state    State
}

// Init sets the inputs, by index, all Waiting. A new instance begins with it, and
// with Close of those that are closed.
func (s *Inputs) Init(settings ...Input) {
	s.inputs, s.closed = s.inputs[:0], 0
	for _, in := range settings {
		s.inputs = append(s.inputs, input{timeout: max(in.Timeout, 0), deadline: never, atStart: in.ArmAtStart})
	}
}

// Start hears that the instance begins.
func (s *Inputs) Start(now time.Duration) {
	for i := range s.inputs {
		if in := &s.inputs[i]; in.atStart && in.state == Waiting {
			in.arm(now)
		}
	}
}

// Received hears, when the handler of a message of input i has returned, that it
// came. It reports whether that has closed the circuit again: then InputRecovered
// is due, so a handler has the data first.
func (s *Inputs) Received(i int, now time.Duration) (recovered bool) {
	if uint(i) >= uint(len(s.inputs)) {
		return false
	}
	in := &s.inputs[i]
	if in.state == Closed {
		return false
	}
	recovered = in.state == Broken && !bug.On(bug.RecoveryUntold)
	in.state = Open
	in.arm(now)
	return recovered
}

// arm lets the timeout begin.
func (in *input) arm(now time.Duration) {
	if in.timeout > 0 {
		in.deadline = now + min(in.timeout, never-now)
	}
}

// Due returns the earliest deadline, if there is one. A message only moves it
// on, so an alarm that was set before may come too early, and never too late;
// except for the message that arms an input, or opens it again.
func (s *Inputs) Due() (at time.Duration, ok bool) {
	at = never
	for i := range s.inputs {
		at = min(at, s.inputs[i].deadline)
	}
	return at, at != never
}

// Expire breaks the inputs whose deadline has passed and returns them: for each,
// InputClosed is due. Where waits says that a message is there and was not
// handled yet, the sender is not silent, and the deadline is moved on. What it
// returns is valid until the next call.
func (s *Inputs) Expire(now time.Duration, waits func(i int) bool) (broken []int) {
	s.broken = s.broken[:0]
	for i := range s.inputs {
		in := &s.inputs[i]
		if in.deadline > now || in.deadline == never {
			continue
		}
		in.deadline = never
		if waits != nil && waits(i) && !bug.On(bug.QueueNotSeen) {
			in.arm(now)
			continue
		}
		in.state = Broken
		s.broken = append(s.broken, i)
	}
	return s.broken
}

// Close hears that nothing will come any more on input i. First: InputClosed is
// due, since the input was not broken before, which said so already. All: now
// each input is closed, none of them merely broken, and AllInputsClosed is due.
func (s *Inputs) Close(i int) (first, all bool) {
	if uint(i) >= uint(len(s.inputs)) || s.inputs[i].state == Closed {
		return false, false
	}
	in := &s.inputs[i]
	first = in.state != Broken
	in.state, in.deadline = Closed, never
	s.closed++
	if bug.On(bug.BrokenIsClosed) {
		open := func(in input) bool { return in.state < Broken }
		return first, !slices.ContainsFunc(s.inputs, open)
	}
	return first, s.closed == len(s.inputs)
}

// State returns the state of input i.
func (s *Inputs) State(i int) State {
	if uint(i) >= uint(len(s.inputs)) {
		return Closed
	}
	return s.inputs[i].state
}
