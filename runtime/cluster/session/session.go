package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/internal/backoff"
)

// Session is one end of a connection between two nodes. It must be used by one goroutine
// at a time. Times are since any moment, and must not go back.
type Session struct {
	config  Config
	now     time.Duration
	started bool // now was set

	hands   handshake
	peer    incarnation
	former  []uint64 // boot ids of former incarnations, the latest last
	removed bool     // the last of them was excluded and not replaced
	events  []Event
	changed bool // PeerRestarted is in events

	connected bool // see Connected
	queue     *queue
	flights   flights
	rtt       rtt
	timeoutAt time.Duration // of the first frame in flight
	attempts  int           // timeouts in a row

	in     receiver
	counts Stats
}

// incarnation is what a session knows about the process at the other end.
type incarnation struct {
	boot    uint64        // 0: unknown
	nonce   uint64        // of its last hello
	knows   bool          // it has accepted this process
	refuses bool          // it has refused this process
	ignores bool          // it has answered, and has not accepted this process
	heard   time.Duration // when its last frame has arrived
}

// New returns a session that has not found its peer. The first frame is a hello.
func New(c Config) (*Session, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.complete()
	s := &Session{config: c, connected: true, queue: newQueue(), flights: newFlights(), in: newReceiver()}
	s.hands.nonce, s.hands.credit = c.Rand.Uint64(), hellosInRow*c.RetryMin
	return s, nil
}

// ErrUnreadEvents is an error of [Session.Send].
var ErrUnreadEvents = errors.New("session: the peer has restarted: call Events before Send")

// Send adds a message to a list. All messages of a lane arrive in the order of Send, or none from
// some message on if the peer restarts. Messages of different lanes have no order. The
// lanes 0 to ControlLanes-1 are for control messages, which go first.
//
// The message has 1 byte to MessageBytesMax. It belongs to the session: the caller must not
// change it any more. The lists have no limit, so the caller must bound what it sends. Send returns
// ErrUnreadEvents after the peer has restarted, until Events is called.
func (s *Session) Send(lane uint64, message []byte) error {
	if len(message) == 0 || len(message) > MessageBytesMax {
		return fmt.Errorf("session: a message must have 1 to %d bytes, got %d", MessageBytesMax, len(message))
	}
	if s.changed {
		return ErrUnreadEvents
	}
	l := s.queue.lane(lane)
	if l.source == nil {
		l.source = &list{total: &s.queue.listed}
	}
	l.source.(*list).add(message)
	s.queue.wake(l)
	return nil
}

// Ready says that a source has a message for a lane, which has no messages of Send. The session
// takes messages of up to MessageBytesMax from it until it has none. The session has no list of
// them: what the source has is neither bounded nor counted here. After the peer has restarted,
// Ready must be called again.
func (s *Session) Ready(lane uint64, from Source) {
	l := s.queue.lane(lane)
	l.source = from
	s.queue.wake(l)
}

// Waits reports whether a message waits for room in a frame.
func (s *Session) Waits() bool { return !s.queue.control.empty() || !s.queue.data.empty() }

// Queued returns how many messages of [Session.Send] in a lane are in no frame.
func (s *Session) Queued(lane uint64) int {
	if l := s.queue.lanes[lane]; l != nil {
		if q, ok := l.source.(*list); ok {
			return len(q.messages) - q.begin
		}
	}
	return 0
}

// Events returns the events since the last call. Call it after each Receive, before Send.
func (s *Session) Events() []Event {
	e := s.events
	s.events, s.changed = nil, false
	return e
}

// Heard reports whether the last frame was one of the current incarnation of the peer. Other frames do
// not show that it is alive.
func (s *Session) Heard() bool { return s.peer.boot != 0 && s.peer.heard == s.now }

// Connected is a hint whether the peer can be reached. While it cannot, the session sends
// nothing but answers. When it can be reached again, the session
// sends at once. A new session assumes that the peer can be reached.
func (s *Session) Connected(now time.Duration, connected bool) {
	s.advance(now)
	if connected && !s.connected {
		s.hands.attempts, s.hands.nextAt = 0, s.now
		s.attempts, s.timeoutAt = 0, s.now // expire sends the first frame again
	}
	s.connected = connected
}

// Frame returns the next frame to send, or nil if there is none at this time. Call it
// after Send, Receive and Connected, and at the time of Next, until it returns nil. The
// frame belongs to the transport, but the session reads it until it is acknowledged. So
// neither the transport nor a receiver in the same process may change it.
func (s *Session) Frame(now time.Duration) []byte {
	s.advance(now)
	f := s.nextFrame()
	if f != nil {
		s.counts.FramesSent++
		s.counts.BytesSent += uint64(len(f))
	}
	return f
}

func (s *Session) nextFrame() []byte {
	if f := s.handshakeFrame(); f != nil {
		return f
	}
	if s.ready() {
		s.expire()
		if s.flights.lost > 0 {
			return s.resend()
		}
		if s.flights.len() < s.config.Window && s.flights.bytes < WindowBytes && s.queue.ready() {
			return s.pack()
		}
	}
	if s.peer.boot != 0 && s.in.ackIsDue(s.now) {
		h := s.header()
		return h.append(make([]byte, 0, ackBytesUsual+len(h.ack.bitmap)))
	}
	return nil
}

// ackBytesUsual is the length of most acknowledgements without a bitmap.
const ackBytesUsual = 48

// ready reports whether data may be sent.
func (s *Session) ready() bool { return s.peer.boot != 0 && !s.peer.refuses && s.connected }

// Next returns the time at which Frame must be called, even if nothing has happened before.
func (s *Session) Next() (at time.Duration, ok bool) {
	at = never
	if t, ok := s.handshakeTime(); ok {
		at = min(at, t)
	}
	if s.ready() && s.flights.len() > 0 {
		at = min(at, s.timeoutAt)
	}
	if s.peer.boot != 0 && s.in.ackPending {
		at = min(at, s.in.ackAt)
	}
	return at, at != never
}

const never = time.Duration(1<<63 - 1)

func (s *Session) advance(now time.Duration) {
	if !s.started {
		s.started, s.hands.nextAt, s.hands.creditAt = true, now, now
		s.now = now
	}
	s.now = max(s.now, now)
}

// header returns a header with an acknowledgement, if there is something to acknowledge.
func (s *Session) header() header {
	h := header{from: s.config.Boot, to: s.peer.boot}
	if s.in.ackPending {
		h.hasAck = true
		h.ack = s.in.takeAck(s.now)
	}
	return h
}

// pack makes a frame of messages.
func (s *Session) pack() []byte {
	h := s.header()
	h.hasData, h.number, h.stamp = true, s.flights.next, s.flights.nextStamp(uint64(s.now))
	f := h.append(s.config.Buffers.begin())
	start := len(f)
	f = s.config.Buffers.keep(s.queue.pack(f, start+itemsBytesMax), s.config.ReuseFrames)
	if s.flights.len() == 0 {
		s.startTimer()
	}
	s.flights.add(flight{frame: f, start: start, stamp: h.stamp, messages: uint32(s.queue.finished)})
	return f
}

// resend sends a lost frame again. It gets a header of its own, because the transport
// may still use the frame that was sent before.
func (s *Session) resend() []byte {
	n, l := s.flights.takeLost()
	h := s.header()
	h.hasData, h.number, h.stamp = true, n, s.flights.nextStamp(uint64(s.now))
	h.ackNow = s.attempts > 0 // its acknowledgement says which other frames are missing
	l.stamp = h.stamp
	s.counts.FramesResent++
	f := h.append(make([]byte, 0, headerBytesMax+len(l.body())))
	return append(f, l.body()...)
}

// acknowledged handles an acknowledgement.
func (s *Session) acknowledged(a *ack) error {
	if err := s.flights.check(a); err != nil {
		return err
	}
	if a.echo > s.flights.echo {
		s.rtt.sample(s.now - time.Duration(a.echo) - time.Duration(min(a.delay, uint64(time.Hour/time.Microsecond)))*time.Microsecond)
	}
	var spare *Buffers
	if s.config.ReuseFrames {
		spare = s.config.Buffers
	}
	messages, progress := s.flights.acknowledge(a, spare)
	s.counts.MessagesAcked += messages
	s.flights.findLost()
	if progress {
		s.attempts = 0
		s.startTimer()
	}
	return nil
}

// startTimer starts the retransmission timer. Its limit is retry.max, even if the measured
// round trip is longer: a process that was stopped for a minute answers late, and the next
// lost frame must not wait for minutes. Only one frame is repeated, so a link with a longer
// round trip is not filled with repetitions.
func (s *Session) startTimer() {
	d := max(min(s.rtt.timeout(), s.config.RetryMax), s.config.RetryMin)
	s.timeoutAt = s.now + s.delay(d, s.config.RetryMax, s.attempts+1)
}

// delay returns the k-th delay: at least first, and up to a quarter more.
func (s *Session) delay(first, most time.Duration, k int) time.Duration {
	return backoff.Delay(first+first/4, most+most/4, retryJitter, k, s.config.Rand.Float64)
}

// expire handles the retransmission timeout.
func (s *Session) expire() {
	if s.flights.len() == 0 || s.now < s.timeoutAt {
		return
	}
	s.attempts++
	s.counts.Timeouts++
	s.flights.expire()
	s.startTimer()
}

// forget drops everything that belongs to the connection with a former incarnation.
func (s *Session) forget() (messages uint64) {
	messages = s.queue.pending() + s.flights.messages
	s.counts.Forgotten += messages
	s.queue, s.flights, s.in = newQueue(), newFlights(), newReceiver()
	s.rtt, s.attempts = rtt{}, 0
	return messages
}
