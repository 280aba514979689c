package peers

import (
	"io"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// actors is an actor system without a log.
type actors struct {
	*actor.ActorSystem
	pids []*actor.PID
}

func newActors() *actors {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	return &actors{ActorSystem: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))}
}

func (a *actors) spawn(x actor.Actor) *actor.PID {
	pid := a.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return x }))
	a.pids = append(a.pids, pid)
	return pid
}

func (a *actors) end() {
	for _, pid := range a.pids {
		a.Root.Stop(pid)
	}
	a.Shutdown()
}

// counter reports when it has handled a number of messages.
type counter struct {
	left int
	done chan<- struct{}
}

func newCounter(n int) (*counter, <-chan struct{}) {
	done := make(chan struct{})
	return &counter{n, done}, done
}

func (c *counter) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(Message); ok {
		if c.left--; c.left == 0 {
			close(c.done)
		}
	}
}

type forwarder struct{ to *actor.PID }

func (f *forwarder) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(Message); ok {
		ctx.Send(f.to, Message{m.N + 1})
	}
}

// ActorPipeline sends n messages through three actors.
func ActorPipeline(n int) {
	a := newActors()
	defer a.end()
	last, done := newCounter(n)
	third := a.spawn(last)
	second := a.spawn(&forwarder{third})
	first := a.spawn(&forwarder{second})
	for i := range n {
		a.Root.Send(first, Message{uint64(i)})
	}
	<-done
}

// burst sends a batch of messages, and then a message to itself, so that sources take
// turns.
type burst struct{ to *actor.PID }

func (b *burst) Receive(ctx actor.Context) {
	const most = 256
	if m, ok := ctx.Message().(Message); ok {
		k := min(m.N, most)
		for i := range k {
			ctx.Send(b.to, Message{i})
		}
		if m.N > k {
			ctx.Send(ctx.Self(), Message{m.N - k})
		}
	}
}

// ActorFanIn sends n messages from eight actors to one.
func ActorFanIn(n int) {
	a := newActors()
	defer a.end()
	last, done := newCounter(max(n/sources, 1) * sources)
	to := a.spawn(last)
	for range sources {
		a.Root.Send(a.spawn(&burst{to}), Message{uint64(max(n/sources, 1))})
	}
	<-done
}

type player struct {
	to   *actor.PID
	done chan<- struct{}
}

func (p *player) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(Message)
	switch {
	case !ok:
	case m.N == 0:
		close(p.done)
	default:
		ctx.Send(p.to, Message{m.N - 1})
	}
}

// ActorPingPong sends one message back and forth between two actors, n hops in all.
func ActorPingPong(n int) {
	a := newActors()
	defer a.end()
	done := make(chan struct{})
	left, right := &player{done: done}, &player{done: done}
	first := a.spawn(left)
	left.to, right.to = a.spawn(right), first
	a.Root.Send(first, Message{uint64(n)})
	<-done
}
