package queue

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// nodes is a queue as a linked list of nodes, numbered from 1. The last node is empty,
// for the next message (docs/explanation/queues.md). Nodes are not freed.
type nodes struct {
	data [7]int8 // 0 is nil
	next [7]int8
	head int8
	tail int8
	used int8
}

// consumed is the value that a pop leaves in place of the message in the corrected
// algorithm.
const consumed = -1

// linkedList is the algorithm of such a queue. left is the value that a pop leaves in
// the node whose message it takes. With nil (0), a message can be lost; with consumed,
// none can.
func linkedList(left int8) algorithm[nodes] {
	a := algorithm[nodes]{start: nodes{head: 1, tail: 1, used: 1}}
	a.step = func(s *nodes, f *frame, c call) string {
		if c.push {
			return s.push(f, int8(c.value))
		}
		return s.pop(f, left)
	}
	return a
}

func (s *nodes) push(f *frame, v int8) string {
	const (
		load = iota // load the tail
		put         // L2
		link        // L3
		move
		help // L4
		moveAndRetry
	)
	switch f.at {
	case load:
		f.x, f.at = s.tail, put
		return fmt.Sprintf("sees the tail: node %d", f.x)
	case put:
		if s.data[f.x] != 0 {
			f.at = help
			return fmt.Sprintf("finds %s in node %d", name(s.data[f.x]), f.x)
		}
		s.data[f.x], f.at = v, link
		return fmt.Sprintf("puts %s into node %d", name(v), f.x)
	case link, help:
		f.at++
		f.y = s.next[f.x]
		if f.y != 0 {
			return fmt.Sprintf("finds node %d behind node %d", f.y, f.x)
		}
		s.used++
		s.next[f.x], f.y = s.used, s.used
		return fmt.Sprintf("appends node %d to node %d", f.y, f.x)
	}
	text := fmt.Sprintf("leaves the tail at node %d", s.tail)
	if s.tail == f.x {
		s.tail = f.y
		text = fmt.Sprintf("moves the tail to node %d", f.y)
	}
	if f.at == move {
		f.end(0)
		return text + " and returns"
	}
	f.at = load
	return text
}

func (s *nodes) pop(f *frame, left int8) string {
	const (
		load = iota
		compare
		follow
		move
		take
	)
	switch f.at {
	case load:
		f.x, f.at = s.head, compare
		return fmt.Sprintf("sees the head: node %d", f.x)
	case compare:
		if f.x == s.tail {
			f.end(0)
			return "sees the tail there and returns nothing"
		}
		f.at = follow
		return fmt.Sprintf("sees the tail elsewhere: node %d", s.tail)
	case follow:
		f.y, f.at = s.next[f.x], move
		return fmt.Sprintf("sees node %d behind node %d", f.y, f.x)
	case move:
		if s.head != f.x {
			f.at = load
			return "sees that the head has moved"
		}
		s.head, f.at = f.y, take
		return fmt.Sprintf("moves the head to node %d", f.y)
	}
	v := s.data[f.x]
	s.data[f.x] = left
	f.end(v)
	return fmt.Sprintf("takes %s out of node %d, leaves %s and returns", name(v), f.x, name(left))
}

// lostMessage is the shortest sequence of steps that loses a message.
const lostMessage = `
push a sees the tail: node 1
push a puts a into node 1
push a appends node 2 to node 1
push b sees the tail: node 1
push a moves the tail to node 2 and returns
pop    sees the head: node 1
pop    sees the tail elsewhere: node 2
pop    sees node 2 behind node 1
pop    moves the head to node 2
pop    takes a out of node 1, leaves nothing and returns
push b puts b into node 1
push b finds node 2 behind node 1
push b leaves the tail at node 2 and returns
`

var twoPushesAndAPop = program{goroutines: [][]call{pushes(1), pushes(2), pops(1)}}

// TestTheLinkedListLosesAMessage has a producer that stops while its node is used and
// popped. When it continues, it finds the node empty and takes it for the tail.
func TestTheLinkedListLosesAMessage(t *testing.T) {
	x, m := explore(linkedList(0), twoPushesAndAPop)
	story := x.shortest(m)
	fmt.Fprintln(t.Output(), strings.Join(story, "\n"))
	if want := strings.Split(strings.TrimSpace(lostMessage), "\n"); !slices.Equal(story, want) {
		t.Errorf("the steps differ from the expected ones, which are\n%s", strings.Join(want, "\n"))
	}
	page, err := os.ReadFile("../../docs/explanation/queues.md")
	if err != nil || !strings.Contains(string(page), lostMessage) {
		t.Errorf("docs/explanation/queues.md has other steps (%v)", err)
	}
}

// TestTheCorrectedLinkedList checks the algorithm with the value consumed: no order of steps
// loses or duplicates a message, or runs forever.
func TestTheCorrectedLinkedList(t *testing.T) {
	speed.NoRace(t)
	for _, p := range append(smallPrograms(t), twoPushesAndAPop) {
		holds(t, linkedList(consumed), p)
	}
}

// smallPrograms are the programs with which each algorithm is tested.
func smallPrograms(t *testing.T) []program {
	t.Helper()
	list := []program{
		{goroutines: [][]call{pushes(1), pushes(2), pops(2)}},
		{goroutines: [][]call{pushes(1, 2), pops(1), pops(1)}},
		{goroutines: [][]call{append(pushes(1), pops(1)...), append(pops(1), pushes(2)...)}},
		{before: pushes(1), goroutines: [][]call{pushes(2), pops(1), pops(1)}},
	}
	if speed.Pick(t, false, true, true) { // some hundred thousand moments
		list = append(list, program{goroutines: [][]call{pushes(1), pushes(2), pops(1), pops(1)}})
	}
	return list
}
