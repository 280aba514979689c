package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// algorithm is a queue as a sequence of atomic steps. S is the shared state. It is
// copied for each step, so that all orders of the steps of a small program can be
// tried.
type algorithm[S comparable] struct {
	start S
	// step makes the next atomic step of a call. It returns a description. At the end
	// of the call it sets f.done and the result.
	step func(s *S, f *frame, c call) (text string)
}

// frame is the local state of a goroutine within a call.
type frame struct {
	at     int8 // the next step
	x, y   int8 // values that it has read
	done   bool
	result int8 // popped, or 0
}

func (f *frame) end(result int8) { f.done, f.result = true, result }

// program has the calls of each goroutine, and calls that one goroutine makes before
// them.
type program struct {
	before     []call
	goroutines [][]call
}

const (
	goroutinesMost = 4
	eventsMost     = 20 // begins and ends of calls
)

// moment is a state of a running program, with everything that was visible from outside
// so far.
type moment[S comparable] struct {
	shared S
	frames [goroutinesMost]frame
	calls  [goroutinesMost]int8 // ended
	begun  [goroutinesMost]bool
	events [eventsMost]event
	count  int8
}

// event is the begin or the end of the current call of a goroutine.
type event struct{ goroutine, result int8 }

// explorer tries all orders of the steps of a program.
type explorer[S comparable] struct {
	algorithm[S]
	program
	history []porcupine.Operation // of the calls before
}

func explore[S comparable](a algorithm[S], p program) (*explorer[S], moment[S]) {
	x := &explorer[S]{algorithm: a, program: p}
	m := moment[S]{shared: a.start}
	for _, c := range p.before {
		x.history = append(x.history, x.alone(&m.shared, c, len(x.history)-len(p.before)))
	}
	return x, m
}

// alone makes a call while no other goroutine runs, at the given time.
func (x *explorer[S]) alone(s *S, c call, time int) porcupine.Operation {
	var f frame
	for !f.done {
		x.step(s, &f, c)
	}
	return porcupine.Operation{Input: c, Output: outcome(c, f.result), Call: int64(time), Return: int64(time)}
}

func outcome(c call, result int8) answer {
	return answer{ok: c.push || result != 0, value: int(result)}
}

// runnable reports whether goroutine g has a step to make.
func (x *explorer[S]) runnable(m *moment[S], g int) bool {
	return int(m.calls[g]) < len(x.goroutines[g])
}

// next makes a step of goroutine g. A call begins with its first step and ends with its
// last step, which allows the fewest explanations.
func (x *explorer[S]) next(m moment[S], g int) (moment[S], string) {
	c := x.goroutines[g][m.calls[g]]
	if !m.begun[g] {
		m.begun[g] = true
		m.note(event{goroutine: int8(g)})
	}
	text := x.step(&m.shared, &m.frames[g], c)
	if m.frames[g].done {
		m.note(event{int8(g), m.frames[g].result})
		m.frames[g], m.begun[g] = frame{}, false
		m.calls[g]++
	}
	return m, text
}

func (m *moment[S]) note(e event) {
	m.events[m.count] = e
	m.count++
}

// over reports whether no goroutine has a step to make.
func (x *explorer[S]) over(m *moment[S]) bool {
	for g := range x.goroutines {
		if x.runnable(m, g) {
			return false
		}
	}
	return true
}

// explained reports whether there is an order of calls that explains a program that is
// over. Pops of the remaining values are added to it.
func (x *explorer[S]) explained(m moment[S]) bool {
	history := slices.Clone(x.history)
	open := make(map[int8]int)
	var calls [goroutinesMost]int
	for time, e := range m.events[:m.count] {
		g := e.goroutine
		if i, ok := open[g]; ok {
			history[i].Output, history[i].Return = outcome(history[i].Input.(call), e.result), int64(time)
			delete(open, g)
			continue
		}
		open[g] = len(history)
		history = append(history, porcupine.Operation{ClientId: int(g), Input: x.goroutines[g][calls[g]], Call: int64(time)})
		calls[g]++
	}
	for time := eventsMost; ; time++ {
		o := x.alone(&m.shared, call{}, time)
		history = append(history, o)
		if !o.Output.(answer).ok {
			return porcupine.CheckOperations(fifo(1<<10, history), history)
		}
	}
}

// all visits everything that can follow m. It returns the number of moments. It fails
// if no order of calls explains a moment, or if a moment can be reached from itself:
// then an order of steps runs forever without the end of a call.
func (x *explorer[S]) all(m moment[S]) (moments int, err error) {
	type view struct {
		shared S
		events [eventsMost]event
	}
	explained := make(map[view]bool)
	onPath := make(map[moment[S]]bool) // false if all its successors were visited
	var visit func(moment[S]) error
	visit = func(m moment[S]) error {
		if open, seen := onPath[m]; open {
			return fmt.Errorf("steps run forever at %+v", m)
		} else if seen {
			return nil
		}
		onPath[m] = true
		defer func() { onPath[m] = false }()
		if x.over(&m) {
			v := view{m.shared, m.events}
			if _, seen := explained[v]; !seen {
				explained[v] = x.explained(m)
			}
			if !explained[v] {
				return fmt.Errorf("no order of calls explains %+v", m)
			}
			return nil
		}
		for g := range x.goroutines {
			if x.runnable(&m, g) {
				after, _ := x.next(m, g)
				if err := visit(after); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = visit(m)
	return len(onPath), err
}

// shortest returns the shortest sequence of steps after which no order of calls
// explains the results, or nil.
func (x *explorer[S]) shortest(m moment[S]) []string {
	type origin struct {
		from moment[S]
		text string
	}
	origins := map[moment[S]]origin{m: {}}
	for queue := []moment[S]{m}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if x.over(&at) && !x.explained(at) {
			var steps []string
			for at != m {
				steps = append(steps, origins[at].text)
				at = origins[at].from
			}
			slices.Reverse(steps)
			return steps
		}
		for g := range x.goroutines {
			if !x.runnable(&at, g) {
				continue
			}
			after, text := x.next(at, g)
			if _, seen := origins[after]; !seen {
				origins[after] = origin{at, who(x.goroutines[g][at.calls[g]]) + " " + text}
				queue = append(queue, after)
			}
		}
	}
	return nil
}

// who is the name of a call's goroutine in a description.
func who(c call) string {
	if c.push {
		return "push " + name(int8(c.value))
	}
	return "pop   "
}

// name is the name of a value in a description.
func name(v int8) string {
	switch v {
	case 0:
		return "nothing"
	case consumed:
		return "CONSUMED"
	}
	return string(rune('a' + v - 1))
}

func pushes(values ...int) (list []call) {
	for _, v := range values {
		list = append(list, call{true, v})
	}
	return list
}

func pops(n int) []call { return make([]call, n) }

// holds explores a program and fails the test if the algorithm is wrong.
func holds[S comparable](t *testing.T, a algorithm[S], p program) {
	t.Helper()
	x, m := explore(a, p)
	moments, err := x.all(m)
	t.Logf("%d moments", moments)
	if err != nil {
		t.Errorf("%+v: %v", p, err)
	}
}
