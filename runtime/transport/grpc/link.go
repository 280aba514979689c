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

// link sends to one peer: its goroutine keeps a stream open and sends the queued
// messages.
type link struct {
	transport    *Transport
	peer         *peer
	address      string
	queue        *queue
	scheduler    scheduler
	ctx          context.Context
	cancel       context.CancelFunc
	certsChanged signal // the certificates have changed
	peerSeen     signal // the peer has connected to this node
	recheck      signal // another process may have the name of the peer
	connected    atomic.Bool
}

func newLink(t *Transport, p *peer, address string) *link {
	q := newQueue(&t.config)
	l := &link{transport: t, peer: p, address: address, queue: q, certsChanged: newSignal(), peerSeen: newSignal(), recheck: newSignal()}
	l.scheduler = scheduler{queue: q, count: &p.count, tooLarge: l.tooLarge}
	l.ctx, l.cancel = context.WithCancel(t.ctx)
	return l
}

// run connects, sends, and reconnects, until the link is cancelled. While connecting
// fails, no messages are queued.
func (l *link) run() {
	defer l.drop()
	failures, missing := 0, time.Now()
	for l.ctx.Err() == nil {
		s, err := l.dial(l.ctx)
		if l.ctx.Err() == nil {
			l.transport.config.Identity.Tried(l.peer.name, err)
		}
		if err != nil {
			l.drop()
			l.failed(err, time.Since(missing))
			failures++
			l.wait(failures)
			continue
		}
		began := time.Now()
		err = l.carry(s)
		if l.ctx.Err() != nil {
			return
		}
		missing = time.Now()
		l.failed(err, 0)
		if time.Since(began) >= steadyMin {
			failures = 0
			continue
		}
		failures++
		l.wait(failures)
	}
}

// dropped counts messages that the queue did not accept. It logs them only while the
// peer is connected. Otherwise the log already says why there is no connection.
func (l *link) dropped(m rejected) {
	l.peer.count.Dropped.Add(uint64(m.all()))
	t := l.transport
	if m.large > 0 {
		l.tooLarge(t.config.MessageBytesMax)
	}
	if m.full > 0 {
		t.logLimit.log(slog.LevelWarn, "full "+l.peer.name, "dropped messages: the queue for a peer is full", "peer", l.peer.name,
			"messages_max", t.config.QueueMessages, "bytes_max", t.config.QueueBytes)
	}
}

// tooLarge logs that a message was dropped for its size.
func (l *link) tooLarge(limit int) {
	l.transport.logLimit.log(slog.LevelError, "large "+l.peer.name, "dropped a message: it is larger than this node and the peer accept",
		"peer", l.peer.name, "bytes_max", limit)
}

// drop drops the queued messages, and closes the queue until the next stream.
func (l *link) drop() {
	l.peer.count.Dropped.Add(uint64(l.queue.close()))
	l.scheduler.drop()
}

// failed logs why there is no stream, for some time already. A refusal is an error, because
// someone must fix the configuration. A peer that cannot be reached is a warning, because it
// may just not be started. It is none for a peer that starts or ends just now.
func (l *link) failed(err error, missing time.Duration) {
	ended := l.transport.config.Ended
	switch {
	case l.ctx.Err() != nil:
	case errors.Is(err, errRefused):
		l.peer.count.Refused.Add(1)
		l.log(slog.LevelError, "no connection to a peer: refused", err)
	case missing < missingMin || ended != nil && ended(l.peer.name):
		l.log(slog.LevelInfo, "no connection to a peer now", err)
	default:
		l.log(slog.LevelWarn, "no connection to a peer", err)
	}
}

func (l *link) log(level slog.Level, what string, err error) {
	l.transport.logLimit.log(level, "link "+l.peer.name+" "+what, what, "peer", l.peer.name, "address", l.address, "error", err)
}

// wait waits longer after each failure, for a random time, or until the peer has
// connected to this node.
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

// carry sends queued messages on a stream, and on its successors, until one breaks.
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
		case <-l.recheck:
			if err := l.transport.isSuperseded(s.process); err != nil {
				return fmt.Errorf("%w: %w", errRefused, wrongProcess(err))
			}
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

// renewal opens the successor of a stream.
type renewal struct {
	link    *link
	timer   *time.Timer
	done    chan dialed
	running bool
	again   bool // the certificates have changed in the meantime
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

// schedule starts a renewal after two thirds of the stream's remaining time.
func (r *renewal) schedule(s *stream) {
	if !s.expires.IsZero() {
		r.timer.Reset(max(time.Until(s.expires)*2/3, renewMin))
	}
}

// begin opens a new stream while the current one is in use.
func (r *renewal) begin(ctx context.Context) {
	if r.running {
		r.again = true
		return
	}
	r.running = true
	r.timer.Stop()
	go func() { // finish or abandon waits for it
		s, err := r.link.dial(ctx)
		r.done <- dialed{s, err}
	}()
}

// finish closes the old stream when the peer has received everything from it, and
// returns the stream to use. This is the old one if the renewal has failed.
func (r *renewal) finish(old *stream, d dialed) *stream {
	r.running = false
	if r.again {
		r.again = false
		r.link.certsChanged.notify()
	}
	if d.err != nil {
		r.link.failed(fmt.Errorf("the current stream cannot be renewed: %w", d.err), missingMin)
		r.schedule(old)
		return old
	}
	old.finish()
	old.close()
	r.schedule(d.stream)
	return d.stream
}

// abandon cancels a renewal.
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
