package supervise

import (
	"math"
	"time"
)

// Input holds the settings of one input.
type Input struct {
	// Timeout: without a message for this long the input breaks. 0: it never breaks.
	Timeout time.Duration
	// ArmAtStart: the timeout begins when the instance starts. Otherwise it begins with
	// the first message, so that a sender that starts slowly does not break the input.
	ArmAtStart bool
}

// State is the state of an input.
type State uint8

const (
	Waiting State = iota // no message has arrived yet
	Open                 // a message has arrived, and the timeout has not passed since
	Broken               // the timeout has passed; the next message opens the input again
	Closed               // no more messages can arrive
)

func (s State) String() string {
	if s > Closed {
		return "unknown"
	}
	return [...]string{"waiting", "open", "broken", "closed"}[s]
}

const never = time.Duration(math.MaxInt64)

// Inputs is the circuit breaker for the inputs of one instance, as in dora's fault
// tolerance. It is used in the turns of that instance and needs no lock. Times are
// relative to the start of the topology. The zero value has no inputs.
type Inputs struct {
	inputs []input
	broken []int // the result of Expire
	closed int   // number of inputs that are Closed
}

type input struct {
	timeout  time.Duration
	deadline time.Duration // never: no deadline
	atStart  bool
	state    State
}

// Init sets the inputs, by index, to Waiting. Call it for each new instance, followed by
// Close for each input that is closed already.
func (s *Inputs) Init(settings ...Input) {
	s.inputs, s.closed = s.inputs[:0], 0
	for _, in := range settings {
		s.inputs = append(s.inputs, input{timeout: max(in.Timeout, 0), deadline: never, atStart: in.ArmAtStart})
	}
}

// Start records that the instance has started, which arms the inputs with ArmAtStart.
func (s *Inputs) Start(now time.Duration) {
	for i := range s.inputs {
		if in := &s.inputs[i]; in.atStart && in.state == Waiting {
			in.arm(now)
		}
	}
}

// Received records that a message arrived on input i. Call it after the handler of the
// message has returned. If it returns true, the input was Broken and the caller must call
// InputRecovered. The handler of the message has run by then.
func (s *Inputs) Received(i int, now time.Duration) (recovered bool) {
	if uint(i) >= uint(len(s.inputs)) {
		return false
	}
	in := &s.inputs[i]
	if in.state == Closed {
		return false
	}
	recovered = in.state == Broken
	in.state = Open
	in.arm(now)
	return recovered
}

// arm starts the timeout.
func (in *input) arm(now time.Duration) {
	if in.timeout > 0 {
		in.deadline = now + min(in.timeout, never-now)
	}
}

// Due returns the earliest deadline, if there is one. A message moves its deadline back,
// so an alarm that was set before may be early but never late. The exception is a message
// that arms an input or recovers it: set a new alarm after it.
func (s *Inputs) Due() (at time.Duration, ok bool) {
	at = never
	for i := range s.inputs {
		at = min(at, s.inputs[i].deadline)
	}
	return at, at != never
}

// Expire breaks the inputs whose deadline has passed and returns them. The caller must
// call InputClosed for each. If hasMessages returns true for an input, messages are in its
// queue and its sender is not silent: its deadline is moved back instead. The result is
// valid until the next call.
func (s *Inputs) Expire(now time.Duration, hasMessages func(i int) bool) (broken []int) {
	s.broken = s.broken[:0]
	for i := range s.inputs {
		in := &s.inputs[i]
		if in.deadline > now || in.deadline == never {
			continue
		}
		in.deadline = never
		if hasMessages != nil && hasMessages(i) {
			in.arm(now)
			continue
		}
		in.state = Broken
		s.broken = append(s.broken, i)
	}
	return s.broken
}

// Close records that no more messages will arrive on input i. If first is true, the
// caller must call InputClosed; it is false if the input was Broken, because InputClosed
// was called then. If all is true, every input is Closed (not only Broken) and the caller
// must call AllInputsClosed.
func (s *Inputs) Close(i int) (first, all bool) {
	if uint(i) >= uint(len(s.inputs)) || s.inputs[i].state == Closed {
		return false, false
	}
	in := &s.inputs[i]
	first = in.state != Broken
	in.state, in.deadline = Closed, never
	s.closed++
	return first, s.closed == len(s.inputs)
}

// State returns the state of input i.
func (s *Inputs) State(i int) State {
	if uint(i) >= uint(len(s.inputs)) {
		return Closed
	}
	return s.inputs[i].state
}
