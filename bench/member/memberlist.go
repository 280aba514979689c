package member

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ml "github.com/hashicorp/memberlist"
)

// bubble runs nodes of memberlist in a bubble of testing/synctest.
type bubble struct {
	load   Load
	start  time.Time
	mu     sync.Mutex
	rng    *rand.Rand
	nodes  []*mlNode
	record *record
	conns  []*mlConn // all streams so far: memberlist does not close streams that wait at its shutdown
	ended  bool
}

// Memberlist runs hashicorp/memberlist under a load.
func Memberlist(t *testing.T, l Load, configure func(*ml.Config)) (result Result) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{load: l, start: time.Now(), rng: rand.New(rand.NewPCG(l.Seed, 2)), record: newRecord(l)}
		for i := range l.Nodes {
			n := &mlNode{bubble: b, number: i, packets: make(chan *ml.Packet, 1024), streams: make(chan net.Conn, 64), running: make(chan struct{})}
			close(n.running)
			b.nodes = append(b.nodes, n)
		}
		for _, n := range b.nodes {
			if err := n.create(configure); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range b.nodes[1:] {
			if _, err := n.list.Join([]string{b.nodes[0].name() + "/" + b.nodes[0].address()}); err != nil && l.Loss == 0 {
				t.Fatal(err)
			}
		}
		for _, a := range l.acts() {
			time.Sleep(a.at - time.Since(b.start))
			b.act(a)
		}
		time.Sleep(l.Settle + l.Run - time.Since(b.start))
		b.mu.Lock()
		result = b.record.end()
		b.mu.Unlock()
		for _, n := range b.nodes {
			n.resume()
			if err := n.list.Shutdown(); err != nil {
				t.Error(err)
			}
		}
		b.mu.Lock()
		b.ended = true
		conns := b.conns
		b.mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
		time.Sleep(10 * time.Minute) // memberlist does not wait for its goroutines
	})
	return result
}

func (b *bubble) act(a act) {
	n := b.nodes[a.node]
	switch a.kind {
	case pause:
		b.mu.Lock()
		b.record.pause(a.node)
		b.mu.Unlock()
		n.pause()
	case resume:
		n.resume()
	case stop:
		b.mu.Lock()
		b.record.stop(time.Since(b.start), a.node)
		b.mu.Unlock()
	}
}

// transmit counts a packet and reports whether it arrives, and after which time. The lock
// must be held.
func (b *bubble) transmit() (delay time.Duration, ok bool) {
	if time.Since(b.start) >= b.load.Settle {
		b.record.packets++
	}
	delay = delayMin + time.Duration(b.rng.Int64N(int64(delayMax-delayMin)))
	return delay, b.rng.Float64() >= b.load.Loss
}

// mlNode is a node and its transport.
type mlNode struct {
	bubble  *bubble
	number  int
	list    *ml.Memberlist
	packets chan *ml.Packet
	streams chan net.Conn

	mu      sync.Mutex
	running chan struct{} // closed while the node is not paused
	held    []*ml.Packet  // packets that arrived in a pause
}

var _ ml.NodeAwareTransport = (*mlNode)(nil)

func (n *mlNode) name() string    { return nameOf(n.number) }
func (n *mlNode) ip() net.IP      { return net.IPv4(10, 0, byte(n.number>>8), byte(n.number)) }
func (n *mlNode) address() string { return n.ip().String() + ":1" }

func (n *mlNode) create(configure func(*ml.Config)) (err error) {
	c := ml.DefaultLANConfig()
	c.Name, c.Transport, c.Events = n.name(), n, n
	c.BindPort, c.AdvertiseAddr, c.AdvertisePort = 1, n.ip().String(), 1
	c.Logger = log.New(io.Discard, "", 0)
	c.EnableCompression = false
	configure(c)
	n.list, err = ml.Create(c)
	return err
}

func (n *mlNode) pause() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = make(chan struct{})
}

func (n *mlNode) resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.running:
		return
	default:
	}
	close(n.running)
	for _, p := range n.held {
		n.push(p)
	}
	n.held = nil
}

// wait blocks while the node is paused.
func (n *mlNode) wait() {
	n.mu.Lock()
	running := n.running
	n.mu.Unlock()
	<-running
}

func (n *mlNode) push(p *ml.Packet) {
	p.Timestamp = time.Now()
	select {
	case n.packets <- p:
	default: // the buffer of a socket is full
	}
}

func (n *mlNode) arrive(p *ml.Packet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.running:
		n.push(p)
	default:
		n.held = append(n.held, p)
	}
}

func (n *mlNode) stopped() bool {
	n.bubble.mu.Lock()
	defer n.bubble.mu.Unlock()
	return n.bubble.record.stopped[n.number] > 0
}

func (n *mlNode) peer(a ml.Address) (*mlNode, error) {
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil {
		return nil, err
	}
	ip := net.ParseIP(host).To4()
	number := int(ip[2])<<8 | int(ip[3])
	if number >= len(n.bubble.nodes) {
		return nil, fmt.Errorf("no node has the address %s", a.Addr)
	}
	return n.bubble.nodes[number], nil
}

func (n *mlNode) WriteToAddress(payload []byte, a ml.Address) (time.Time, error) {
	n.wait()
	to, err := n.peer(a)
	if err != nil {
		return time.Time{}, err
	}
	if n.stopped() {
		return time.Now(), nil
	}
	n.bubble.mu.Lock()
	delay, ok := n.bubble.transmit()
	n.bubble.mu.Unlock()
	if ok {
		p := &ml.Packet{Buf: append([]byte(nil), payload...), From: &net.UDPAddr{IP: n.ip(), Port: 1}}
		time.AfterFunc(delay, func() {
			if !to.stopped() {
				to.arrive(p)
			}
		})
	}
	return time.Now(), nil
}

// retransmission is the first timeout of TCP; each further one is twice as long.
const retransmission = 200 * time.Millisecond

// segment sends one segment of a stream, again until it arrives, and returns the delay.
func (b *bubble) segment(timeout time.Duration) (total time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for again := retransmission; ; again *= 2 {
		delay, ok := b.transmit()
		if ok {
			return total + delay
		}
		if total += again; total > timeout {
			return total
		}
	}
}

var errTimeout = errors.New("the node does not answer")

func (n *mlNode) DialAddressTimeout(a ml.Address, timeout time.Duration) (net.Conn, error) {
	n.wait()
	to, err := n.peer(a)
	if err != nil {
		return nil, err
	}
	delay := n.bubble.segment(timeout) + n.bubble.segment(timeout)
	if delay > timeout || to.stopped() || n.stopped() {
		time.Sleep(timeout)
		return nil, errTimeout
	}
	time.Sleep(delay)
	near, far := net.Pipe()
	own, remote := newConn(near, n, to), newConn(far, to, n)
	go func() {
		to.wait()
		select {
		case to.streams <- remote:
		default:
			_ = remote.Close()
		}
	}()
	return own, nil
}

// mlConn is one end of a stream. As with TCP, a write does not wait for the receiver.
type mlConn struct {
	net.Conn
	own, remote *mlNode

	mu     sync.Mutex
	closed bool
	queue  chan []byte
}

// streamWrites is the number of writes that wait: memberlist writes a message at once.
const streamWrites = 64

func newConn(pipe net.Conn, own, remote *mlNode) *mlConn {
	c := &mlConn{Conn: pipe, own: own, remote: remote, queue: make(chan []byte, streamWrites)}
	own.bubble.mu.Lock()
	own.bubble.conns = append(own.bubble.conns, c)
	ended := own.bubble.ended
	own.bubble.mu.Unlock()
	go c.send()
	if ended {
		_ = c.Close()
	}
	return c
}

func (c *mlConn) send() {
	const segmentBytes = 1400
	for b := range c.queue {
		delay := time.Duration(0)
		for range (len(b) + segmentBytes - 1) / segmentBytes {
			delay = max(delay, c.own.bubble.segment(time.Minute))
		}
		time.Sleep(delay)
		c.remote.wait()
		if c.own.stopped() || c.remote.stopped() {
			break
		}
		if _, err := c.Conn.Write(b); err != nil {
			break
		}
	}
	_ = c.Conn.Close()
}

func (c *mlConn) Write(b []byte) (int, error) {
	c.own.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	select {
	case c.queue <- append([]byte(nil), b...):
		return len(b), nil
	default:
		return 0, errTimeout
	}
}

// Close ends the stream after the writes so far. If the other end does not read them, it
// gives up after some time.
func (c *mlConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.queue)
		_ = c.SetDeadline(time.Now().Add(time.Minute))
	}
	return nil
}

func (c *mlConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.remote.ip(), Port: 1} }

func (n *mlNode) WriteTo(b []byte, a string) (time.Time, error) {
	return n.WriteToAddress(b, ml.Address{Addr: a})
}

func (n *mlNode) DialTimeout(a string, timeout time.Duration) (net.Conn, error) {
	return n.DialAddressTimeout(ml.Address{Addr: a}, timeout)
}

func (n *mlNode) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return n.ip(), 1, nil }
func (n *mlNode) PacketCh() <-chan *ml.Packet                         { return n.packets }
func (n *mlNode) StreamCh() <-chan net.Conn                           { return n.streams }
func (n *mlNode) Shutdown() error                                     { return nil }

// NotifyJoin, NotifyUpdate and NotifyLeave implement ml.EventDelegate.
func (n *mlNode) NotifyJoin(*ml.Node)   {}
func (n *mlNode) NotifyUpdate(*ml.Node) {}
func (n *mlNode) NotifyLeave(about *ml.Node) {
	b := n.bubble
	b.mu.Lock()
	defer b.mu.Unlock()
	b.record.dead(time.Since(b.start), n.number, numberOf(about.Name))
}
