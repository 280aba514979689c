package member

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// Swim runs a [Core] on a [transport.Transport] with the clock of the host.
type Swim struct {
	settings Settings
	events   *Events
	heard    signs
	start    time.Time

	mu        sync.Mutex
	core      *Core
	addresses map[string]string // as the transport knows them
	started   bool
	closed    bool
	warned    time.Time // when a malformed message was last logged

	wake chan struct{} // the loop must look at Core.Next again
	left chan struct{} // closed when enough members have confirmed a leave
	end  chan struct{}
	loop sync.WaitGroup
}

var _ Detector = (*Swim)(nil)

// New returns the detector of this package. It fails with ErrConfig.
func New(s Settings) (*Swim, error) {
	if err := s.Complete(); err != nil {
		return nil, err
	}
	if s.Node.Boot == 0 {
		s.Node.Boot = uint64(time.Now().UnixNano())
	}
	core, err := NewCore(s.Node, s.First, s.Config, rand.New(rand.NewPCG(seed(), seed())))
	if err != nil {
		return nil, err
	}
	if s.Owner != nil {
		core.owner = s.Owner
	}
	return &Swim{
		settings: s, core: core, addresses: make(map[string]string), events: NewEvents(s.Observe),
		wake: make(chan struct{}, 1), left: make(chan struct{}), end: make(chan struct{}),
	}, nil
}

// seed returns a random number. Two nodes must not probe in the same order.
func seed() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}

// Start implements [Detector].
func (s *Swim) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.started {
		return nil
	}
	s.started, s.start = true, time.Now()
	s.events.Start()
	s.settings.Transport.Handle(s.settings.Group, s.receive)
	s.loop.Go(s.run)
	return nil
}

// Started implements [Detector].
func (s *Swim) Started() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start
}

// Members implements [Detector].
func (s *Swim) Members() []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.Members()
}

// Fenced implements [Detector].
func (s *Swim) Fenced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.Fenced()
}

// Stats returns the counts so far.
func (s *Swim) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.Stats()
}

// Heard implements [Detector]. It only sets a flag, which is read before the next decision
// about the node.
func (s *Swim) Heard(name string) { s.heard.set(name) }

// Remove implements [Detector].
func (s *Swim) Remove(name string) (err error) {
	if !s.do(func(now time.Duration) { err = s.core.Remove(now, name) }) {
		return ErrClosed
	}
	return err
}

// Leave implements [Detector].
func (s *Swim) Leave(ctx context.Context) error {
	if !s.do(s.core.Leave) {
		return ErrClosed
	}
	select {
	case <-s.left:
		return nil
	case <-s.end:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close implements [Detector].
func (s *Swim) Close() error {
	s.mu.Lock()
	closed, started := s.closed, s.started
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	close(s.end)
	if started {
		s.settings.Transport.Handle(s.settings.Group, nil)
		s.loop.Wait()
		s.events.Close()
	}
	return nil
}

// run calls Tick when it is due.
func (s *Swim) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.end:
			return
		case <-s.wake:
		case <-timer.C:
		}
		var next time.Duration
		s.do(func(now time.Duration) {
			if now >= s.core.Next() {
				s.core.Tick(now)
			}
			next = s.core.Next() - now
		})
		timer.Reset(max(next, 0))
	}
}

func (s *Swim) receive(from string, payloads [][]byte) {
	for _, p := range payloads {
		var err error
		s.do(func(now time.Duration) { err = s.core.Step(now, from, p) })
		if err != nil {
			s.warn(err)
		}
	}
}

func (s *Swim) warn(err error) {
	s.mu.Lock()
	now := time.Now()
	silent := !s.warned.IsZero() && now.Sub(s.warned) < time.Minute
	if !silent {
		s.warned = now
	}
	s.mu.Unlock()
	if !silent {
		s.settings.Logger.Warn("a message about members was dropped", "err", err)
	}
}

// do makes a call of the core, and carries out its effects. It returns false if the
// detector does not run.
func (s *Swim) do(call func(now time.Duration)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.closed {
		return false
	}
	before, now := s.core.Next(), time.Since(s.start)
	s.heard.take(func(name string) { s.core.Heard(now, name) })
	call(now)
	messages, events := s.core.Take()
	for _, e := range events { // under the lock, so that their order is that of the core
		s.events.Add(e)
		if e.Kind == EventJoined || e.Kind == EventAlive {
			delete(s.addresses, e.Member.Name) // the owner of the transport may have removed the peer while it was down
		}
	}
	for _, m := range messages {
		if known, ok := s.addresses[m.To]; !ok || known != m.Address {
			s.addresses[m.To] = m.Address
			s.settings.Transport.SetPeer(m.To, m.Address)
		}
		s.settings.Transport.Send(m.To, transport.Message{Group: s.settings.Group, Payload: m.Payload, Class: transport.Urgent})
	}
	for _, e := range events { // after the messages: one of them may be for this member
		if e.Kind == EventForgotten {
			delete(s.addresses, e.Member.Name)
			s.settings.Transport.RemovePeer(e.Member.Name)
		}
	}
	if s.core.Left() {
		select {
		case <-s.left:
		default:
			close(s.left)
		}
	}
	if s.core.Next() < before {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return true
}
