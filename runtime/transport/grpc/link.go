package grpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// link is the way to a peer: a goroutine that keeps a stream to it and sends what
// waits.
type link struct {
	transport    *Transport
	peer         *peer
	address      string
	queue        *queue
	scheduler    scheduler
	ctx          context.Context
	cancel       context.CancelFunc
	certsChanged signal // the certificates are others
	peerSeen     signal // of life: the peer has connected to this node
	connected    atomic.Bool
}

func newLink(t *Transport, p *peer, address string) *link {
	q := newQueue(&t.config)
	l := &link{transport: t, peer: p, address: address, queue: q, certsChanged: newSignal(), peerSeen: newSignal()}
	l.scheduler = scheduler{queue: q, count: &p.count, tooLarge: l.tooLarge}
	l.ctx, l.cancel = context.WithCancel(t.ctx)
	return l
}

// run connects, sends, and connects again, until the link is cancelled. After a
// failure to connect nothing waits, until it has succeeded.
func (l *link) run() {
	defer l.drop()
	failures := 0
	for l.ctx.Err() == nil {
		s, err := l.dial(l.ctx)
		if err != nil {
			l.drop()
			l.failed(err)
			failures++
			l.wait(failures)
			continue
		}
		began := time.Now()
		err = l.carry(s)
		if l.ctx.Err() != nil {
			return
		}
		l.failed(err)
		if time.Since(began) >= steadyMin {
			failures = 0
			continue
		}
		failures++
		l.wait(failures)
	}
}

// dropped counts messages that the queue has not taken. They are logged while the
// peer is connected; otherwise the log says why it is not.
func (l *link) dropped(m rejected) {
	l.peer.count.Dropped.Add(uint64(m.all()))
	t := l.transport
	if m.large > 0 {
		l.tooLarge(t.config.MessageBytesMax)
	}
	if m.full > 0 {
		t.logLimit.log(slog.LevelWarn, "full "+l.peer.name, "dropped messages: too much waits for a peer", "peer", l.peer.name,
			"messages_max", t.config.QueueMessages, "bytes_max", t.config.QueueBytes)
	}
}

// tooLarge logs that a message was dropped for its size.
func (l *link) tooLarge(limit int) {
	l.transport.logLimit.log(slog.LevelError, "large "+l.peer.name, "dropped a message: it is larger than this node and the peer take",
		"peer", l.peer.name, "bytes_max", limit)
}

// drop drops the messages that wait, and closes the queue until the next stream.
func (l *link) drop() {
	l.peer.count.Dropped.Add(uint64(l.queue.close()))
	l.scheduler.drop()
}

// failed logs why there is no stream. Who is refused, or refuses, has something to
// set right; who cannot be reached may just not have been started.
func (l *link) failed(err error) {
	if l.ctx.Err() != nil {
		return
	}
	level, what := slog.LevelWarn, "no connection to a peer"
	if errors.Is(err, errRefused) {
		level, what = slog.LevelError, "no connection to a peer: refused"
		l.peer.count.Refused.Add(1)
	}
	l.transport.logLimit.log(level, "link "+l.peer.name+" "+what, what, "peer", l.peer.name, "address", l.address, "error", err)
}

// wait waits longer after each failure, for a time that is nobody else's, or until
// the peer gives a sign of life.
func (l *link) wait(failures int) {
	d := min(backoffMin<<min(failures-1, 16), backoffMax)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.peerSeen:
	case <-l.ctx.Done():
	}
}

// carry sends what waits along a stream, and along its successors, until one
// breaks.
func (l *link) carry(s *stream) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	l.queue.open()
	l.connected.Store(true)
	defer l.connected.Store(false)
	l.transport.config.Logger.Debug("transport: connected to a peer", "peer", l.peer.name, "address", l.address)
	defer func() { s.close() }()
	l.scheduler.begin(s.other.messageBytesMax)

	renewing := newRenewal(l)
	defer renewing.abandon(cancel)
	renewing.schedule(s)
	ready := make(chan struct{})
	close(ready)
	for {
		next := (<-chan struct{})(l.queue.wake)
		pending := l.scheduler.load()
		if pending {
			next = ready
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return s.cause()
		case <-s.expired:
			return errExpired
		case <-l.certsChanged:
			renewing.begin(ctx)
		case <-renewing.timer.C:
			renewing.begin(ctx)
		case r := <-renewing.done:
			if s = renewing.finish(s, r); r.stream == s {
				l.scheduler.begin(s.other.messageBytesMax)
			}
		case <-next:
			if !pending {
				continue
			}
			f := l.scheduler.frame()
			err := s.send(f.buffers)
			l.scheduler.done(f, err == nil)
			if err != nil {
				return err
			}
		}
	}
}

// making is a stream that is being made to succeed another.
type renewal struct {
	link    *link
	timer   *time.Timer
	done    chan dialed
	running bool
	again   bool // the certificates have changed meanwhile
}

type dialed struct {
	stream *stream
	err    error
}

func newRenewal(l *link) *renewal {
	r := &renewal{link: l, timer: time.NewTimer(0), done: make(chan dialed, 1)}
	r.timer.Stop()
	return r
}

// later has a successor made when two thirds of a stream's time have passed.
func (r *renewal) schedule(s *stream) {
	if !s.expires.IsZero() {
		r.timer.Reset(max(time.Until(s.expires)*2/3, renewMin))
	}
}

// begin makes one, beside the stream that is in use.
func (r *renewal) begin(ctx context.Context) {
	if r.running {
		r.again = true
		return
	}
	r.running = true
	r.timer.Stop()
	go func() { // finish or abandon wait for it
		s, err := r.link.dial(ctx)
		r.done <- dialed{s, err}
	}()
}

// finish puts a successor in the place of a stream, when the peer has taken all
// that was sent along the old one, and returns what is to be used.
func (r *renewal) finish(old *stream, d dialed) *stream {
	r.running = false
	if r.again {
		r.again = false
		r.link.certsChanged.notify()
	}
	if d.err != nil {
		r.link.failed(fmt.Errorf("the stream that stands cannot be renewed: %w", d.err))
		r.schedule(old)
		return old
	}
	old.finish()
	old.close()
	r.schedule(d.stream)
	return d.stream
}

// abandon ends what is being made.
func (r *renewal) abandon(cancel context.CancelFunc) {
	r.timer.Stop()
	if !r.running {
		return
	}
	cancel()
	if d := <-r.done; d.stream != nil {
		d.stream.close()
	}
}
