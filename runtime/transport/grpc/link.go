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
	transport *Transport
	peer      *peer
	address   string
	queue     *queue
	outbox    outbox
	ctx       context.Context
	cancel    context.CancelFunc
	renewal   bell // the certificates are others
	sign      bell // of life: the peer has connected to this node
	connected atomic.Bool
}

func newLink(t *Transport, p *peer, address string) *link {
	q := newQueue(&t.config)
	l := &link{transport: t, peer: p, address: address, queue: q, renewal: newBell(), sign: newBell()}
	l.outbox = outbox{queue: q, count: &p.count, tooLarge: l.tooLarge}
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
		if time.Since(began) >= steady {
			failures = 0
			continue
		}
		failures++
		l.wait(failures)
	}
}

// dropped counts messages that the queue has not taken. They are logged while the
// peer is connected; otherwise the log says why it is not.
func (l *link) dropped(m misfits) {
	l.peer.count.Dropped.Add(uint64(m.all()))
	t := l.transport
	if m.large > 0 {
		l.tooLarge(t.config.MessageBytesMax)
	}
	if m.full > 0 {
		t.notices.tell(slog.LevelWarn, "full "+l.peer.name, "dropped messages: too much waits for a peer", "peer", l.peer.name,
			"messages_max", t.config.QueueMessages, "bytes_max", t.config.QueueBytes)
	}
}

// tooLarge logs that a message was dropped for its size.
func (l *link) tooLarge(most int) {
	l.transport.notices.tell(slog.LevelError, "large "+l.peer.name, "dropped a message: it is larger than this node and the peer take",
		"peer", l.peer.name, "bytes_max", most)
}

// drop drops the messages that wait, and closes the queue until the next stream.
func (l *link) drop() {
	l.peer.count.Dropped.Add(uint64(l.queue.close()))
	l.outbox.drop()
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
	l.transport.notices.tell(level, "link "+l.peer.name+" "+what, what, "peer", l.peer.name, "address", l.address, "error", err)
}

// wait waits longer after each failure, for a time that is nobody else's, or until
// the peer gives a sign of life.
func (l *link) wait(failures int) {
	d := min(backoffMin<<min(failures-1, 16), backoffMax)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.sign:
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
	l.outbox.begin(s.other.messageBytesMax)

	made := newMaking(l)
	defer made.abandon(cancel)
	made.later(s)
	ready := make(chan struct{})
	close(ready)
	for {
		next := (<-chan struct{})(l.queue.wake)
		pending := l.outbox.load()
		if pending {
			next = ready
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return s.broken()
		case <-s.expired:
			return errExpired
		case <-l.renewal:
			made.begin(ctx)
		case <-made.due.C:
			made.begin(ctx)
		case r := <-made.done:
			if s = made.finish(s, r); r.stream == s {
				l.outbox.begin(s.other.messageBytesMax)
			}
		case <-next:
			if !pending {
				continue
			}
			f := l.outbox.frame()
			err := s.send(f.buffers)
			l.outbox.done(f, err == nil)
			if err != nil {
				return err
			}
		}
	}
}

// making is a stream that is being made to succeed another.
type making struct {
	link    *link
	due     *time.Timer
	done    chan made
	running bool
	again   bool // the certificates have changed meanwhile
}

type made struct {
	stream *stream
	err    error
}

func newMaking(l *link) *making {
	m := &making{link: l, due: time.NewTimer(0), done: make(chan made, 1)}
	m.due.Stop()
	return m
}

// later has a successor made when two thirds of a stream's time have passed.
func (m *making) later(s *stream) {
	if !s.expires.IsZero() {
		m.due.Reset(max(time.Until(s.expires)*2/3, renewMin))
	}
}

// begin makes one, beside the stream that is in use.
func (m *making) begin(ctx context.Context) {
	if m.running {
		m.again = true
		return
	}
	m.running = true
	m.due.Stop()
	go func() { // finish or abandon wait for it
		s, err := m.link.dial(ctx)
		m.done <- made{s, err}
	}()
}

// finish puts a successor in the place of a stream, when the peer has taken all
// that was sent along the old one, and returns what is to be used.
func (m *making) finish(old *stream, r made) *stream {
	m.running = false
	if m.again {
		m.again = false
		m.link.renewal.ring()
	}
	if r.err != nil {
		m.link.failed(fmt.Errorf("the stream that stands cannot be renewed: %w", r.err))
		m.later(old)
		return old
	}
	old.finish()
	old.close()
	m.later(r.stream)
	return r.stream
}

// abandon ends what is being made.
func (m *making) abandon(cancel context.CancelFunc) {
	m.due.Stop()
	if !m.running {
		return
	}
	cancel()
	if r := <-m.done; r.stream != nil {
		r.stream.close()
	}
}
