package supervise

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/internal/test/speed"
)

// instance is an Inputs and its trackers in a transcript. The commands are
//
//	input NAME [timeout=D] [arm=start]
//	again                                    a new instance replaces this one
//	TIME start
//	TIME received NAME
//	TIME expire [waits=NAME]
//	TIME closed NAME
//
// The output of each command is the handlers that would be called, and the next deadline.
type instance struct {
	names    []string
	settings []Input
	inputs   Inputs
	tracked  []Tracked[time.Duration] // the messages are times
}

func TestInputs(t *testing.T) {
	script.Run(t, "testdata/inputs/*.txt", func(*testing.T) func([]string) ([]string, error) { return new(instance).line })
}

func (s *instance) index(name string) int {
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return len(s.names) // not an input
}

func (s *instance) line(words []string) ([]string, error) {
	if words[0] == "input" {
		return nil, s.input(words[1:])
	}
	now, err := time.ParseDuration(words[0])
	if err != nil {
		return nil, err
	}
	var calls []string
	switch words[1] {
	case "again":
		s.reset()
	case "start":
		s.inputs.Start(now)
	case "received":
		calls = s.received(s.index(words[2]), now)
	case "expire":
		waits := ""
		if len(words) > 2 {
			waits = strings.TrimPrefix(words[2], "waits=")
		}
		for _, i := range s.inputs.Expire(now, func(i int) bool { return s.names[i] == waits }) {
			s.tracked[i].Became(s.inputs.State(i))
			calls = append(calls, "InputClosed "+s.names[i])
		}
	case "closed":
		calls = s.closed(s.index(words[2]))
	default:
		return nil, errors.New(words[1])
	}
	states := ""
	for i, name := range s.names {
		states += name + " " + s.tracked[i].State().String() + ", "
		if s.tracked[i].State() != s.inputs.State(i) {
			return nil, errors.New("the tracker of " + name + " does not match")
		}
	}
	due := "no deadline"
	if at, ok := s.inputs.Due(); ok {
		due = "deadline " + at.String()
	}
	return append(calls, states+due), nil
}

func (s *instance) input(words []string) error {
	var in Input
	var err error
	for _, w := range words[1:] {
		if timeout, ok := strings.CutPrefix(w, "timeout="); ok {
			in.Timeout, err = time.ParseDuration(timeout)
		} else if w == "arm=start" {
			in.ArmAtStart = true
		} else {
			err = errors.New(w)
		}
	}
	s.names = append(s.names, words[0])
	s.settings = append(s.settings, in)
	s.reset()
	return err
}

func (s *instance) reset() {
	s.inputs.Init(s.settings...)
	s.tracked = make([]Tracked[time.Duration], len(s.names))
}

// received does what generated code does with a message.
func (s *instance) received(i int, now time.Duration) (calls []string) {
	if i < len(s.names) {
		s.tracked[i].Set(now)
		calls = []string{"Receive"}
	}
	if s.inputs.Received(i, now) {
		calls = append(calls, "InputRecovered "+s.names[i])
	}
	return calls
}

// closed does what generated code does when an edge closes.
func (s *instance) closed(i int) (calls []string) {
	first, all := s.inputs.Close(i)
	if i < len(s.names) {
		s.tracked[i].Became(Closed)
	}
	if first {
		calls = append(calls, "InputClosed "+s.names[i])
	}
	if all {
		calls = append(calls, "AllInputsClosed")
	}
	return calls
}

// TestInputsAtRandom compares with a model that records when each input received
// messages.
func TestInputsAtRandom(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		settings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Input {
			return Input{
				Timeout:    time.Duration(rapid.IntRange(0, 3).Draw(t, "timeout")),
				ArmAtStart: rapid.Bool().Draw(t, "at start"),
			}
		}), 1, 4).Draw(t, "inputs")
		type inputModel struct {
			last             time.Duration // when the timeout began; -1: not yet
			came             bool
			reported, closed bool // InputClosed was called; the input is Closed
		}
		model := make([]inputModel, len(settings))
		var s Inputs
		s.Init(settings...)
		now := time.Duration(0)
		s.Start(now)
		for i := range model {
			model[i].last = -1
			if settings[i].ArmAtStart {
				model[i].last = 0
			}
		}
		allClosed := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(settings)-1).Draw(t, "input")
			m := &model[i]
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				now++
			case 1:
				if recovered := s.Received(i, now); recovered != (m.reported && !m.closed) {
					t.Fatalf("input %d: recovered is %v", i, recovered)
				}
				if !m.closed {
					*m = inputModel{last: now, came: true}
				}
			case 2:
				waiting := rapid.IntRange(0, 15).Draw(t, "waiting")
				waits := func(i int) bool { return waiting>>i&1 == 1 }
				broken := s.Expire(now, waits)
				for i := range model {
					m := &model[i]
					late := settings[i].Timeout > 0 && m.last >= 0 && now-m.last >= settings[i].Timeout && !m.reported && !m.closed
					if late && waits(i) {
						m.last, late = now, false
					}
					if late {
						m.reported = true
						if len(broken) == 0 || broken[0] != i {
							t.Fatalf("Expire must return input %d, got %v", i, broken)
						}
						broken = broken[1:]
					}
				}
				if len(broken) > 0 {
					t.Fatalf("%v broke", broken)
				}
			case 3:
				first, all := s.Close(i)
				if first != (!m.reported && !m.closed) {
					t.Fatalf("input %d: first is %v", i, first)
				}
				m.reported, m.closed = true, true
				open := 0
				for _, m := range model {
					if !m.closed {
						open++
					}
				}
				if all {
					allClosed++
				}
				if all && open > 0 || open == 0 && allClosed != 1 {
					t.Fatalf("all was returned %d times, with %d inputs open", allClosed, open)
				}
			}
			for i, m := range model {
				want := Waiting
				switch {
				case m.closed:
					want = Closed
				case m.reported:
					want = Broken
				case m.came:
					want = Open
				}
				if s.State(i) != want {
					t.Fatalf("input %d is %v, want %v", i, s.State(i), want)
				}
			}
		}
	})
}

// TestTrackedKeepsItsLast: the last message is kept after the input is closed.
func TestTrackedKeepsItsLast(t *testing.T) {
	var tr Tracked[string]
	if _, ok := tr.Last(); ok || tr.Closed() || tr.State() != Waiting {
		t.Error("want no message and state Waiting before the first message")
	}
	tr.Became(Broken)
	if !tr.Closed() {
		t.Error("a broken input must count as closed")
	}
	tr.Set("a")
	if tr.Closed() || tr.State() != Open {
		t.Error("the input of the running handler must be open")
	}
	tr.Became(Closed)
	tr.Set("b")
	if last, ok := tr.Last(); last != "b" || !ok || !tr.Closed() {
		t.Error("it has", last, ok, tr.State())
	}
	if s := State(9).String(); s != "unknown" {
		t.Error(s)
	}
}

func TestReceivedDoesNotAllocate(t *testing.T) {
	var s Inputs
	s.Init(Input{Timeout: time.Second}, Input{})
	if n := testing.AllocsPerRun(100, func() {
		s.Received(0, 1)
		s.Received(1, 1)
		s.Expire(time.Hour, nil)
	}); n != 0 {
		t.Error(n, "allocations")
	}
}
