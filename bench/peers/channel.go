package peers

import (
	"runtime"
	"sync"

	"github.com/topogen/topogen/bench/work"
)

type stage struct{ steps int }

//go:noinline
func (s *stage) receive(m *Message, out chan<- Message) {
	if s.steps > 0 {
		work.Do(s.steps)
	}
	out <- Message{m.N + 1}
}

type sink struct{ steps, handled int }

//go:noinline
func (s *sink) receive(*Message) {
	if s.steps > 0 {
		work.Do(s.steps)
	}
	s.handled++
}

// ChannelPipeline sends n messages through three goroutines, whose handlers do
// that many steps of work.
func ChannelPipeline(n, steps int) {
	in, first, second := make(chan Message, capacity), make(chan Message, capacity), make(chan Message, capacity)
	pass := func(from <-chan Message, to chan<- Message) {
		s := &stage{steps}
		for m := range from {
			s.receive(&m, to)
		}
		close(to)
	}
	go func() {
		for i := range n {
			in <- Message{uint64(i)}
		}
		close(in)
	}()
	go pass(in, first)
	go pass(first, second)
	s := &sink{steps: steps}
	for m := range second {
		s.receive(&m)
	}
}

// ChannelFanIn has eight goroutines send n messages to one.
func ChannelFanIn(n int) {
	c := make(chan Message, capacity)
	var senders sync.WaitGroup
	for range sources {
		senders.Go(func() {
			for i := range n / sources {
				c <- Message{uint64(i)}
			}
		})
	}
	go func() {
		senders.Wait()
		close(c)
	}()
	var s sink
	for m := range c {
		s.receive(&m)
	}
}

// ChannelPingPong has messages go to and fro between two goroutines, n hops in
// all. Held keeps each goroutine on a thread of its own.
func ChannelPingPong(n, messages int, held bool) {
	left, right := make(chan Message, 8*capacity), make(chan Message, 8*capacity)
	for i := range messages {
		[]chan Message{left, right}[i%2] <- Message{uint64(n / messages)}
	}
	var arrived sync.WaitGroup
	arrived.Add(messages)
	play := func(from <-chan Message, to chan<- Message) {
		if held {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		for m := range from {
			hit(&m, to, &arrived)
		}
	}
	var players sync.WaitGroup
	players.Go(func() { play(left, right) })
	players.Go(func() { play(right, left) })
	arrived.Wait()
	close(left)
	close(right)
	players.Wait()
}

//go:noinline
func hit(m *Message, to chan<- Message, arrived *sync.WaitGroup) {
	if m.N == 0 {
		arrived.Done()
		return
	}
	to <- Message{m.N - 1}
}

// ChannelSend has goroutines send n messages to one.
func ChannelSend(n, goroutines int) {
	c := make(chan Message, capacity)
	var senders sync.WaitGroup
	for range goroutines {
		senders.Go(func() {
			for i := range n / goroutines {
				c <- Message{uint64(i)}
			}
		})
	}
	go func() {
		senders.Wait()
		close(c)
	}()
	var s sink
	for m := range c {
		s.receive(&m)
	}
}

// ChannelAsk has goroutines ask n questions, each with a channel for its answers.
func ChannelAsk(n, goroutines int) {
	type question struct {
		Message
		answer chan Message
	}
	questions := make(chan question, capacity)
	go func() {
		for q := range questions {
			q.answer <- reply(&q.Message)
		}
	}()
	var callers sync.WaitGroup
	for range goroutines {
		callers.Go(func() {
			answers := make(chan Message, 1)
			for i := range n / goroutines {
				questions <- question{Message{uint64(i)}, answers}
				<-answers
			}
		})
	}
	callers.Wait()
	close(questions)
}

//go:noinline
func reply(m *Message) Message { return Message{m.N + 1} }

// Parallel does n times the steps of work on two goroutines and nothing else: the
// most that a second worker can bring on this machine, now.
func Parallel(n, steps int) {
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range n / 2 {
				work.Do(steps)
			}
		})
	}
	both.Wait()
}
