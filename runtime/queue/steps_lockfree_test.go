package queue

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// blocks is LockFree as a sequence of atomic steps, with blocks of one or two places.
// Blocks, and the arrays of their places, are numbered from 1. Arrays are used again.
type blocks struct {
	list       [6]stepBlock
	arrays     [6]stepArray
	head, tail int8
	used       int8 // blocks
	made       int8 // arrays
	spares     [6]bool
}

type stepBlock struct{ pushed, popped, next, prev, array int8 }

type stepArray struct{ state, value [2]int8 }

// flaw is a step that is left out.
type flaw int

const (
	noFlaw        flaw = iota
	forgetsMark        // where it abandons a place
	recyclesInUse      // without a check of the places
)

// stepwise is LockFree with blocks of the given number of places.
func stepwise(places int8, without flaw) algorithm[blocks] {
	return algorithm[blocks]{step: func(s *blocks, f *frame, c call) string {
		if c.push {
			return s.push(f, int8(c.value), places)
		}
		return s.pop(f, places, without)
	}}
}

// make appends a block. It prefers a spare array.
func (s *blocks) make(prev int8) int8 {
	array := int8(0)
	for i, spare := range s.spares {
		if spare {
			array, s.spares[i] = int8(i), false
			break
		}
	}
	if array == 0 {
		s.made++
		array = s.made
	}
	s.used++
	s.list[s.used] = stepBlock{prev: prev, array: array}
	return s.used
}

// at returns the state and the value of a place.
func (s *blocks) at(b, place int8) (state, value *int8) {
	a := &s.arrays[s.list[b].array]
	return &a.state[place], &a.value[place]
}

func (s *blocks) push(f *frame, v int8, places int8) string {
	const (
		load = iota
		claim
		write
		fill
		leave
		follow
		help
		move
		begin
		beginTail
	)
	b := f.x
	switch f.at {
	case load:
		f.x, f.at = s.tail, claim
		if f.x == 0 {
			f.at = begin
		}
		return fmt.Sprintf("sees the last block: %d", f.x)
	case begin:
		f.at = beginTail
		if s.head == 0 {
			s.head = s.make(0)
		}
		f.x = s.head // a step of its own in the code; head does not move while tail is nil
		return fmt.Sprintf("begins with block %d", s.head)
	case beginTail:
		if f.at = load; s.tail == 0 {
			s.tail = f.x
		}
		return fmt.Sprintf("has the tail at block %d", s.tail)
	case claim:
		f.y = s.list[b].pushed
		s.list[b].pushed++
		if f.at = write; f.y >= places {
			f.at = follow
			return fmt.Sprintf("finds block %d used up", b)
		}
		return fmt.Sprintf("claims place %d of block %d", f.y, b)
	case write:
		_, value := s.at(b, f.y)
		*value, f.at = v, fill
		return fmt.Sprintf("writes %s", name(v))
	case fill:
		state, _ := s.at(b, f.y)
		if *state != int8(empty) {
			f.at = leave
			return "finds its place given up"
		}
		*state = int8(filled)
		f.end(0)
		return "has filled its place and returns"
	case leave:
		state, value := s.at(b, f.y)
		*state, *value, f.at = int8(done), 0, load
		return "leaves its place"
	case follow:
		if f.y = s.list[b].next; f.y != 0 {
			f.at = help
			return fmt.Sprintf("sees block %d behind", f.y)
		}
		f.y, f.at = s.make(b), move
		s.list[b].next = f.y
		s.list[f.y].pushed = 1
		state, value := s.at(f.y, 0)
		*state, *value = int8(filled), v
		return fmt.Sprintf("appends block %d with %s in it", f.y, name(v))
	}
	if s.tail == b {
		s.tail = f.y
	}
	text := fmt.Sprintf("has the tail at block %d", s.tail)
	if f.at == move {
		f.end(0)
		return text + " and returns"
	}
	f.at = load
	return text
}

func (s *blocks) pop(f *frame, places int8, without flaw) string {
	const (
		load = iota
		look
		compare
		claim
		inspect
		take
		follow
		move
		recycle
	)
	b := f.x
	switch f.at {
	case load:
		if f.x, f.at = s.head, look; f.x == 0 {
			f.end(0)
			return "sees no block and returns nothing"
		}
		return fmt.Sprintf("sees the first block: %d", f.x)
	case look:
		if f.y, f.at = s.list[b].popped, compare; f.y >= places {
			f.at = follow
		}
		return fmt.Sprintf("sees %d places claimed by consumers", f.y)
	case compare:
		if f.at = claim; f.y >= s.list[b].pushed {
			f.end(0)
			return "sees no more claimed by producers and returns nothing"
		}
		return "sees more claimed by producers"
	case claim:
		f.y = s.list[b].popped
		s.list[b].popped++
		if f.at = inspect; f.y >= places {
			f.at = follow
			return fmt.Sprintf("finds block %d used up", b)
		}
		return fmt.Sprintf("claims place %d of block %d", f.y, b)
	case inspect:
		state, _ := s.at(b, f.y)
		if *state == int8(filled) {
			f.at = take
			return "finds its place filled"
		}
		f.at = load
		if without == forgetsMark {
			return "gives its place up and leaves no mark"
		}
		*state = int8(abandoned)
		return "gives its place up"
	case take:
		state, value := s.at(b, f.y)
		v := *value
		*state, *value = int8(done), 0
		f.end(v)
		return fmt.Sprintf("takes %s and returns", name(v))
	case follow:
		if f.y, f.at = s.list[b].next, move; f.y == 0 {
			f.end(0)
			return "sees no block behind and returns nothing"
		}
		return fmt.Sprintf("sees block %d behind", f.y)
	case move:
		f.at = load
		if s.head != b {
			return "sees that the head has moved"
		}
		s.head, f.at = f.y, recycle
		return fmt.Sprintf("moves the head to block %d", f.y)
	}
	f.at = load
	old := s.list[b].prev
	s.list[b].prev = 0
	if old == 0 {
		return "has nothing to recycle"
	}
	array := s.list[old].array
	for _, state := range s.arrays[array].state[:places] {
		if state != int8(done) && without != recyclesInUse {
			return fmt.Sprintf("leaves the places of block %d, because a place is in use", old)
		}
	}
	s.arrays[array], s.spares[array] = stepArray{}, true
	return fmt.Sprintf("recycles the places of block %d", old)
}

// recycling is a program in which places are used again while a consumer has stopped.
var recycling = program{before: pushes(1, 2), goroutines: [][]call{pops(1), pops(2), pushes(3, 4)}}

// TestLockFreeInAllOrders checks that no order of the steps of small programs loses or
// duplicates a message, or runs forever, wherever a goroutine stops: at the ends of
// blocks, and while places are used again.
func TestLockFreeInAllOrders(t *testing.T) {
	speed.NoRace(t)
	for _, p := range append(smallPrograms(t), twoPushesAndAPop) {
		holds(t, stepwise(1, noFlaw), p)
		if len(p.goroutines) < goroutinesMost {
			holds(t, stepwise(2, noFlaw), p)
		}
	}
	if speed.Pick(t, false, true, true) {
		holds(t, stepwise(1, noFlaw), recycling)
	}
}

// TestAMarkForgotten leaves out the mark of an abandoned place. Then the place must
// accept a message that is lost, as in the linked list.
func TestAMarkForgotten(t *testing.T) {
	x, m := explore(stepwise(2, forgetsMark), twoPushesAndAPop)
	if x.shortest(m) == nil {
		t.Error("no message is lost: not all orders are tried")
	}
}

// TestPlacesRecycledTooEarly leaves out the check that the places are done, which must
// lead to an error.
func TestPlacesRecycledTooEarly(t *testing.T) {
	x, m := explore(stepwise(1, recyclesInUse), recycling)
	if _, err := x.all(m); err == nil {
		t.Error("no error: no places are used again")
	}
}
