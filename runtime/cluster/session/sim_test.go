package session_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/transport"
)

// world is two nodes on a simulated network, with an upper layer that checks the guarantees:
// messages of a lane arrive exactly once and in order between two incarnations.
type world struct {
	rng     *rand.Rand
	net     *transport.Network[[]byte]
	now     time.Duration
	nodes   [2]*process
	boots   uint64
	down    [2]time.Duration // when a node that is down starts again; 0: it is up
	counts  map[string]int
	failure error
	copies  bool // the network copies frames, and the sessions use theirs again
}

// process is an incarnation of a node.
type process struct {
	w       *world
	node    int
	boot    uint64
	session *session.Session

	peer     uint64 // the boot id of the peer, as the events say
	era      uint32 // number of restarts of the peer
	sent     map[uint64]uint32
	received map[uint64]uint32
	got, put int // messages received from the peer, and sent to it, in this era
	peerEra  uint32
	sources  map[uint64]*source // of the odd lanes
	buffer   []session.Delivery
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}, copies: seed%2 == 0}
	w.net = transport.NewNetwork[[]byte](rand.New(rand.NewPCG(seed, 2)), transport.Faults{})
	for i := range w.nodes {
		w.start(i)
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %v: %s", w.now, fmt.Sprintf(format, args...))
	}
}

// start starts a process of a node. A process that was running before is killed.
func (w *world) start(node int) {
	w.boots++
	c := config(fmt.Sprint("n", node), fmt.Sprint("n", 1-node), w.boots)
	c.ReuseFrames = w.copies
	s, err := session.New(c)
	if err != nil {
		w.fail("%v", err)
	}
	p := &process{w: w, node: node, boot: w.boots, session: s, sent: map[uint64]uint32{}, received: map[uint64]uint32{}, sources: map[uint64]*source{}}
	w.nodes[node], w.down[node] = p, 0
	p.flush()
}

func (w *world) stop(node int, until time.Duration) {
	w.nodes[node], w.down[node] = nil, until
	w.counts["restarts"]++
}

// run lets the time pass until a moment.
func (w *world) run(until time.Duration) {
	for w.failure == nil {
		at := until
		if t, ok := w.net.Next(); ok {
			at = min(at, time.Duration(t))
		}
		for i, p := range w.nodes {
			if p == nil {
				at = min(at, w.down[i])
			} else if t, ok := p.session.Next(); ok {
				at = min(at, t)
			}
		}
		w.now = max(w.now, at)
		if w.now >= until {
			return
		}
		w.step()
	}
}

// step does everything whose time has come.
func (w *world) step() {
	for {
		_, to, frame, ok := w.net.Deliver(int64(w.now))
		if !ok {
			break
		}
		if p := w.nodes[to]; p != nil {
			p.receive(frame)
		}
	}
	for i, p := range w.nodes {
		switch {
		case p == nil && w.down[i] <= w.now:
			w.start(i)
		case p != nil:
			if at, ok := p.session.Next(); ok && at <= w.now {
				p.flush()
				if at, ok := p.session.Next(); ok && at <= w.now {
					w.fail("n%d: Next returns %v again after Frame", p.node, at)
				}
			}
		}
	}
}

// source has the messages of a lane until the session takes them.
type source struct{ messages [][]byte }

func (s *source) Next(b []byte) (head, body []byte) {
	if len(s.messages) == 0 {
		return nil, nil
	}
	m := s.messages[0]
	n := len(m) % 10 % len(m)
	return append(b, m[:n]...), m[n:]
}

func (s *source) Took() { s.messages = s.messages[1:] }

// The head of a message: who has sent it to whom, and its place in its lane.
const headBytes = 8 + 8 + 4 + 4 + 4

func (p *process) send(lane uint64, size int) {
	m := make([]byte, 0, max(size, headBytes))
	m = binary.LittleEndian.AppendUint64(m, p.boot)
	m = binary.LittleEndian.AppendUint64(m, p.peer)
	m = binary.LittleEndian.AppendUint32(m, p.era)
	m = binary.LittleEndian.AppendUint32(m, p.sent[lane])
	m = binary.LittleEndian.AppendUint32(m, uint32(size))
	index := byte(p.sent[lane])
	for i := len(m); i < size; i++ {
		m = append(m, byte(i*7)+index)
	}
	p.sent[lane]++
	p.put++
	if lane%2 == 1 {
		from := p.sources[lane]
		if from == nil {
			from = new(source)
			p.sources[lane] = from
		}
		from.messages = append(from.messages, m)
		p.session.Ready(lane, from)
	} else if err := p.session.Send(lane, m); err != nil {
		p.w.fail("n%d: Send: %v", p.node, err)
	}
}

func (p *process) receive(frame []byte) {
	out, err := p.session.Receive(p.w.now, frame, p.buffer[:0])
	p.buffer = out
	if err != nil {
		p.w.fail("n%d: %v", p.node, err)
	}
	for _, d := range out {
		p.check(d)
	}
	for _, e := range p.session.Events() {
		p.handle(e)
	}
	p.flush()
}

func (p *process) check(d session.Delivery) {
	m := d.Message
	if len(m) < headBytes {
		p.w.fail("n%d: a message of %d bytes", p.node, len(m))
		return
	}
	from, to := binary.LittleEndian.Uint64(m), binary.LittleEndian.Uint64(m[8:])
	era, index, size := binary.LittleEndian.Uint32(m[16:]), binary.LittleEndian.Uint32(m[20:]), binary.LittleEndian.Uint32(m[24:])
	if p.got == 0 {
		p.peerEra = era
	}
	switch {
	case from != p.peer:
		p.w.fail("n%d: a message of process %d, while the peer is %d", p.node, from, p.peer)
	case to != 0 && to != p.boot:
		p.w.fail("n%d: process %d got a message for process %d", p.node, p.boot, to)
	case era != p.peerEra:
		p.w.fail("n%d: messages of era %d and %d", p.node, p.peerEra, era)
	case index != p.received[d.Lane]:
		p.w.fail("n%d: lane %d: message %d, want %d", p.node, d.Lane, index, p.received[d.Lane])
	case max(int(size), headBytes) != len(m):
		p.w.fail("n%d: lane %d: message %d has %d bytes, want %d", p.node, d.Lane, index, len(m), size)
	}
	for i := headBytes; i < len(m); i++ {
		if m[i] != byte(i*7)+byte(index) {
			p.w.fail("n%d: lane %d: byte %d of message %d differs", p.node, d.Lane, i, index)
			break
		}
	}
	p.received[d.Lane]++
	p.got++
}

func (p *process) handle(e session.Event) {
	switch e := e.(type) {
	case session.PeerStarted:
		if p.peer != 0 {
			p.w.fail("n%d: process %d started, after %d", p.node, e.Boot, p.peer)
		}
		p.peer = e.Boot
	case session.PeerRestarted:
		if e.Old != p.peer || e.New <= e.Old {
			p.w.fail("n%d: %+v, after %d", p.node, e, p.peer)
		}
		p.peer = e.New
		p.era++
		p.got, p.put = 0, 0
		clear(p.sent)
		clear(p.sources)
		clear(p.received)
		p.w.counts["restarts seen"]++
	default:
		p.w.fail("n%d: unexpected event %T%+v", p.node, e, e)
	}
}

// flush sends all frames and checks the limits.
func (p *process) flush() {
	for range 100_000 {
		f := p.session.Frame(p.w.now)
		if f == nil {
			p.limits()
			return
		}
		if p.w.copies {
			f = bytes.Clone(f)
		}
		p.w.net.Send(int64(p.w.now), p.node, 1-p.node, f)
	}
	p.w.fail("n%d: Frame never returns nil", p.node)
}

func (p *process) limits() {
	v := p.session.Stats()
	switch {
	case v.MessagesQueuedTotal != v.MessagesAcked+v.Forgotten+v.Pending:
		p.w.fail("n%d: messages are missing: %+v", p.node, v)
	case v.UnackedFrames > session.WindowFrames || v.UnackedBytes > session.WindowBytes+session.FrameBytesMax:
		p.w.fail("n%d: the window is exceeded: %+v", p.node, v)
	case v.AheadFrames > session.WindowFrames || v.AheadBytes > session.WindowBytes+session.FrameBytesMax:
		p.w.fail("n%d: too many frames wait: %+v", p.node, v)
	}
}

// settle heals the network and waits until all messages have arrived.
func (w *world) settle() {
	w.net.Heal()
	w.net.SetFaults(transport.Faults{DelayMin: int64(time.Millisecond), DelayMax: int64(time.Millisecond), Ordered: true})
	for _, p := range w.nodes {
		if p != nil {
			p.session.Connected(w.now, true)
			p.flush()
		}
	}
	end := w.now + 20*time.Second
	for w.failure == nil && !w.settled() {
		if w.now >= end {
			w.fail("messages do not arrive: %s", w.state())
		}
		w.run(w.now + 100*time.Millisecond)
	}
}

func (w *world) settled() bool {
	for i, p := range w.nodes {
		o := w.nodes[1-i]
		if p == nil || o == nil || p.peer != o.boot || p.put != o.got || p.session.Stats().Pending > 0 {
			return false
		}
	}
	return w.net.Len() == 0
}

func (w *world) state() (s string) {
	for _, p := range w.nodes {
		if p != nil {
			s += fmt.Sprintf("\nn%d boot %d: peer %d, sent %d, received %d, %+v", p.node, p.boot, p.peer, p.put, p.got, p.session.Stats())
		}
	}
	return s
}
