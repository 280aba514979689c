package peers

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

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

// ChannelPipeline sends n messages through three goroutines, whose handlers do the given
// steps of work.
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

// ChannelFanIn sends n messages from eight goroutines to one.
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

// ChannelPingPong sends messages back and forth between two goroutines, n hops in all. If
// held is true, each goroutine is locked to a thread.
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

// ChannelScatter passes balls among goroutines, each of which sends each ball to a random
// one, n hops in all.
func ChannelScatter(n, instances, balls int) {
	nodes := make([]chan Message, instances)
	for i := range nodes {
		nodes[i] = make(chan Message, max(capacity, balls)) // has room for all balls, so no send waits
	}
	for i := range balls {
		nodes[i%instances] <- Message{uint64(n / balls)}
	}
	var arrived sync.WaitGroup
	arrived.Add(balls)
	var players sync.WaitGroup
	for i, from := range nodes {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		players.Go(func() {
			for m := range from {
				hit(&m, nodes[random.IntN(instances)], &arrived)
			}
		})
	}
	arrived.Wait()
	for _, c := range nodes {
		close(c)
	}
	players.Wait()
}

// ball is a message with the time at which it was sent; 0: it is not timed.
type ball struct {
	left int
	sent int64
}

// ChannelHops works like ChannelPingPong and returns the times of every every-th hop in
// nanoseconds.
func ChannelHops(n, balls, every int, held bool) []float64 {
	left, right := make(chan ball, 8*capacity), make(chan ball, 8*capacity)
	for i := range balls {
		[]chan ball{left, right}[i%2] <- ball{left: n / balls}
	}
	var arrived sync.WaitGroup
	arrived.Add(balls)
	began := time.Now()
	play := func(from <-chan ball, to chan<- ball) (took []float64) {
		if held {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
		}
		took = make([]float64, 0, n/every+balls)
		for b := range from {
			if b.sent != 0 {
				took = append(took, float64(int64(time.Since(began))-b.sent))
			}
			if b.left == 0 {
				arrived.Done()
				continue
			}
			sent := int64(0)
			if b.left%every == 0 {
				sent = int64(time.Since(began))
			}
			to <- ball{b.left - 1, sent}
		}
		return took
	}
	var players sync.WaitGroup
	var took [2][]float64
	players.Go(func() { took[0] = play(left, right) })
	players.Go(func() { took[1] = play(right, left) })
	arrived.Wait()
	close(left)
	close(right)
	players.Wait()
	return append(took[0], took[1]...)
}

// ChannelFlow sends n copies of a message, of any size, from one goroutine to another.
func ChannelFlow[M any](n int, message M) {
	c := make(chan M, capacity)
	go func() {
		for range n {
			c <- message
		}
		close(c)
	}()
	handled := 0
	for m := range c {
		take(&m, &handled)
	}
}

//go:noinline
func take[M any](m *M, handled *int) {
	if m != nil {
		*handled++
	}
}

// ChannelSend sends n messages from several goroutines to one.
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

// ChannelAsk sends n questions from several goroutines, each with a channel for its
// replies.
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

// ChannelAskWithin sends n questions from one goroutine, which gives up when ctx ends.
func ChannelAskWithin(ctx context.Context, n int) {
	type question struct {
		Message
		answer chan Message
	}
	questions := make(chan question, capacity)
	defer close(questions)
	go func() {
		for q := range questions {
			q.answer <- reply(&q.Message)
		}
	}()
	answers := make(chan Message, 1)
	for i := range n {
		select {
		case questions <- question{Message{uint64(i)}, answers}:
		case <-ctx.Done():
			return
		}
		select {
		case <-answers:
		case <-ctx.Done():
			return
		}
	}
}

// ChannelAskBusy sends n questions while pairs of goroutines send balls back and forth,
// which keeps all processors busy.
func ChannelAskBusy(n, pairs int) {
	over := make(chan struct{})
	var players sync.WaitGroup
	for range pairs {
		there, back := make(chan Message, capacity), make(chan Message, capacity)
		players.Go(func() {
			for m := range there {
				back <- m
			}
		})
		players.Go(func() {
			defer close(there)
			for m := (Message{}); ; m = <-back {
				select {
				case <-over:
					return
				default:
					there <- m
				}
			}
		})
	}
	ChannelAsk(n, 1)
	close(over)
	players.Wait()
}

//go:noinline
func reply(m *Message) Message { return Message{m.N + 1} }

// Parallel does the steps of work n times on two goroutines without messages. This is the
// largest gain that a second worker can give on this computer at this time.
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
