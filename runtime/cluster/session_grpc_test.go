package cluster_test

import (
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// endpoint drives a session over a transport.
type endpoint struct {
	t       *testing.T
	peer    string
	network transport.Transport
	start   time.Time
	wake    *time.Timer

	mu       sync.Mutex
	session  *session.Session
	received map[uint64]uint64
	total    int
	arrived  *sync.Cond
}

func newEndpoint(t *testing.T, node, peer string, boot uint64) (*endpoint, *grpc.Transport) {
	t.Helper()
	network, err := grpc.Listen(grpc.Config{Node: node, Topology: "bank", Address: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.New(session.Config{
		Topology: "bank", Plan: "plan-1", Node: node, Peer: peer, Boot: boot,
		Rand: rand.New(rand.NewPCG(boot, 1)), ReuseFrames: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{t: t, peer: peer, network: network, start: time.Now(), session: s, received: map[uint64]uint64{}}
	e.arrived = sync.NewCond(&e.mu)
	e.wake = time.AfterFunc(time.Hour, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.flush()
	})
	network.Handle(frameGroup, e.receive)
	return e, network
}

const frameGroup = 5 // of the transport

func (e *endpoint) receive(_ string, payloads [][]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var got []session.Delivery
	for _, f := range payloads {
		var err error
		if got, err = e.session.Receive(time.Since(e.start), f, got[:0]); err != nil {
			e.t.Error(err)
		}
		for _, d := range got {
			e.check(d)
		}
		e.session.Events()
	}
	e.flush()
	e.arrived.Broadcast()
}

// check compares a message with its number: each of its words is the same number.
func (e *endpoint) check(d session.Delivery) {
	for b := d.Message; len(b) > 0; b = b[8:] {
		if n := binary.LittleEndian.Uint64(b); n != e.received[d.Lane] {
			e.t.Errorf("lane %d: message %d, want %d", d.Lane, n, e.received[d.Lane])
			break
		}
	}
	e.received[d.Lane]++
	e.total++
}

func (e *endpoint) flush() {
	for f := e.session.Frame(time.Since(e.start)); f != nil; f = e.session.Frame(time.Since(e.start)) {
		e.network.Send(e.peer, transport.Message{Group: frameGroup, Payload: f})
	}
	if at, ok := e.session.Next(); ok {
		e.wake.Reset(max(0, at-time.Since(e.start)))
	}
}

// TestFramesAreReusedOverGRPC sends messages both ways over real connections. With -race
// it also shows that the transport does not read a frame after its acknowledgement.
func TestFramesAreReusedOverGRPC(t *testing.T) {
	t.Parallel() // it waits for the other node
	a, na := newEndpoint(t, "n1", "n2", 1)
	b, nb := newEndpoint(t, "n2", "n1", 2)
	na.SetPeer("n2", nb.Addr().String())
	nb.SetPeer("n1", na.Addr().String())
	defer na.Close()
	defer nb.Close()
	const messages, lanes = 4000, 5
	var wg sync.WaitGroup
	for _, e := range []*endpoint{a, b} {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, 1))
			var sent [lanes]uint64
			for range messages {
				lane := rng.IntN(lanes)
				m := make([]byte, 0, 16<<10)
				for range 1 + rng.IntN(1+1<<rng.IntN(11)) {
					m = binary.LittleEndian.AppendUint64(m, sent[lane])
				}
				sent[lane]++
				e.mu.Lock()
				if err := e.session.Send(uint64(100+lane), m); err != nil {
					t.Error(err)
				}
				e.flush()
				e.mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, e := range []*endpoint{a, b} {
		e.mu.Lock()
		for e.total < messages {
			e.arrived.Wait()
		}
		t.Logf("%+v", e.session.Stats())
		e.mu.Unlock()
		e.wake.Stop()
	}
}
