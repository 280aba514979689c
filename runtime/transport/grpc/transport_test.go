package grpc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topogen/topogen/runtime/transport"
)

// TestCarries: while the links work, all messages arrive, in order.
func TestCarries(t *testing.T) {
	t.Parallel() // it waits for messages
	both(t, func(t *testing.T, p *pki) {
		const count = 5000
		var nodes []*Transport
		var tallies []*tally
		for _, name := range []string{"n1", "n2", "n3"} {
			n, y := start(t, p.config(t, name)), newTally(t)
			n.Handle(ledger, y.receive)
			nodes, tallies = append(nodes, n), append(tallies, y)
		}
		meet(t, nodes...)
		var senders sync.WaitGroup
		for _, a := range nodes {
			for _, b := range nodes {
				senders.Go(func() {
					if a == b {
						return
					}
					for i := range uint64(count) {
						a.Send(b.config.Node, number(i))
					}
				})
			}
		}
		senders.Wait()
		for i, y := range tallies {
			for j, a := range nodes {
				if i != j {
					await(t, "all from "+a.config.Node, func() bool { return y.from(a.config.Node) == count })
				}
			}
		}
		for _, n := range nodes {
			await(t, "its counters", func() bool {
				s := n.Stats()
				return s.Sent == 2*count && s.Received == 2*count && s.SentBytes == 16*count && s.ReceivedBytes == 16*count
			})
			if s := n.Stats(); s.Dropped+s.Unclaimed+s.Refused != 0 || len(s.Peers) != 2 || s.Peers[0].Queued != 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestLargeMessages: messages larger than a chunk arrive complete, for several groups
// at a time, and urgent messages overtake them.
func TestLargeMessages(t *testing.T) {
	both(t, func(t *testing.T, p *pki) {
		a, b := start(t, p.config(t, "n1")), start(t, p.config(t, "n2"))
		var got sync.Map
		var small, before atomic.Int64
		for g := range uint64(3) {
			b.Handle(g, func(_ string, payloads [][]byte) {
				for _, p := range payloads {
					if len(p) < chunkBytes {
						small.Add(1)
						continue
					}
					got.Store(sha256.Sum256(p), g)
					before.Store(small.Load())
				}
			})
		}
		meet(t, a, b)
		rng := rand.New(rand.NewPCG(1, 2))
		want := make(map[[32]byte]uint64)
		var all []transport.Message
		for i, size := range []int{wholeBytesMax + 1, 6 * chunkBytes, 3*chunkBytes - 1, 2 * chunkBytes, 5*chunkBytes + 5, chunkBytes} {
			payload := make([]byte, size)
			for j := 0; j+8 <= size; j += 8 {
				binary.LittleEndian.PutUint64(payload[j:], rng.Uint64())
			}
			want[sha256.Sum256(payload)] = uint64(i % 3)
			all = append(all, transport.Message{Group: uint64(i % 3), Payload: payload})
		}
		for range 100 {
			all = append(all, transport.Message{Group: 1, Payload: []byte("heartbeat"), Class: transport.Urgent})
		}
		a.Send("n2", all...)
		for sum, group := range want {
			await(t, "a large message", func() bool { _, ok := got.Load(sum); return ok })
			if g, _ := got.Load(sum); g != group {
				t.Errorf("the message arrived in group %v, want %d", g, group)
			}
		}
		if before.Load() != 100 {
			t.Errorf("%d small messages arrived before the last large one, want all 100", before.Load())
		}
		if s := b.Stats(); s.Refused+s.Unclaimed != 0 || s.Received != 106 {
			t.Errorf("%+v", s)
		}
		if left := b.assembling.left.Load(); left != int64(b.config.ReassemblyBytesMax) {
			t.Errorf("%d bytes of the budget are left, want all %d", left, b.config.ReassemblyBytesMax)
		}
	})
}

// TestUnreachablePeer: messages to a peer that cannot be reached are
// counted and dropped.
func TestUnreachablePeer(t *testing.T) {
	var none *pki
	a, b := start(t, none.config(t, "n1")), start(t, none.config(t, "n2"))
	var received atomic.Int64
	b.Handle(ledger, func(_ string, payloads [][]byte) { received.Add(int64(len(payloads))) })
	address := b.Addr().String()
	meet(t, a, b)
	b.Close()
	await(t, "the connection to be lost", func() bool { return !connected(a, b) })
	sent := uint64(0)
	await(t, "messages to be dropped", func() bool {
		a.Send("n2", number(0), transport.Message{Group: ledger, Payload: make([]byte, 2*chunkBytes)})
		sent += 2
		return a.Stats().Dropped > 0
	})
	await(t, "an empty queue", func() bool { return a.Stats().Peers[0].Queued == 0 })
	if s := a.Stats(); s.Dropped+s.Sent != sent {
		t.Errorf("%d sent, %+v", sent, s)
	}
	a.Send("nobody", number(0))
	a.Send("n1", number(0))
	if s := a.Stats(); s.Dropped+s.Sent != sent+2 {
		t.Errorf("%d sent, %+v", sent+2, s)
	}

	// After a restart at the same address, the peer is found as soon as it connects.
	c := none.config(t, "n2")
	c.Address, c.Peers = address, map[string]string{"n1": a.Addr().String()}
	b = start(t, c)
	b.Handle(ledger, func(_ string, payloads [][]byte) { received.Add(int64(len(payloads))) })
	await(t, "a message", func() bool {
		a.Send("n2", number(0))
		return received.Load() > 0
	})
	a.RemovePeer("n2")
	dropped := a.Stats().Dropped
	a.Send("n2", number(0))
	if s := a.Stats(); s.Dropped < dropped+1 {
		t.Errorf("%+v", s)
	}
	a.SetPeer("n2", "127.0.0.1:1")
	a.SetPeer("n2", address)
	before := received.Load()
	await(t, "a message", func() bool {
		a.Send("n2", number(0))
		return received.Load() > before
	})
}

// TestQueueIsBounded: for a peer that accepts nothing, only the messages that the queue
// holds use memory.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel() // it waits for messages
	var none *pki
	c := none.config(t, "n1")
	c.QueueMessages, c.QueueBytes, c.MessageBytesMax = 100, 8<<20, 4<<20
	var log logged
	c.Logger = log.logger()
	a, b := start(t, c), start(t, none.config(t, "n2"))
	gate := make(chan struct{})
	b.Handle(ledger, func(string, [][]byte) { <-gate })
	defer close(gate)
	meet(t, a, b)
	sent := 0
	payload := bytes.Repeat([]byte{1}, 256<<10)
	await(t, "a full queue", func() bool {
		a.Send("n2", transport.Message{Group: ledger, Payload: payload})
		sent++
		s := a.Stats()
		return s.Dropped > 100
	})
	s := a.Stats()
	if s.Peers[0].Queued > 8*4 {
		t.Errorf("%d messages of 256 KiB are in a queue of 8 MiB", s.Peers[0].Queued)
	}
	if got := s.Sent + s.Dropped + uint64(s.Peers[0].Queued); got != uint64(sent) {
		t.Errorf("%d sent, %+v", sent, s)
	}
	a.Send("n2", transport.Message{Group: ledger, Payload: make([]byte, 4<<20+1)})
	if d := a.Stats().Dropped - s.Dropped; d != 1 {
		t.Errorf("a message above the limit: %d dropped", d)
	}
	a.Send("n2", transport.Message{Group: ledger, Payload: make([]byte, 4<<20)}, transport.Message{Group: ledger, Payload: make([]byte, 2<<20)})
	if d := a.Stats().Dropped - s.Dropped; d != 3 {
		t.Errorf("large messages beyond the limit: %d dropped, want 3", d)
	}

	// Other classes and groups have their own room.
	for _, m := range []transport.Message{
		{Group: ledger, Payload: payload, Class: transport.Urgent},
		{Group: ledger, Payload: make([]byte, 4<<20), Class: transport.Bulk},
		{Group: ledger + 1, Payload: make([]byte, 4<<20)},
	} {
		a.Send("n2", m, m)
	}
	if d := a.Stats().Dropped - s.Dropped; d != 3 {
		t.Errorf("%d dropped, want 3 as before", d)
	}
	if log.count("WARN", "the queue for a peer is full", "peer=n2") != 1 || log.count("ERROR", "larger than this node and the peer accept") != 1 {
		t.Error(&log)
	}
}

// TestUnknownGroup: messages for a group without a handler are counted, and affect no
// other messages.
func TestUnknownGroup(t *testing.T) {
	var none *pki
	a, b := start(t, none.config(t, "n1")), start(t, none.config(t, "n2"))
	y := newTally(t)
	b.Handle(ledger, y.receive)
	meet(t, a, b)
	a.Send("n2", transport.Message{Group: 7, Payload: []byte("?")}, number(0), transport.Message{Group: 8, Payload: make([]byte, 3<<20)}, number(1))
	await(t, "both messages", func() bool { return y.from("n1") == 2 })
	await(t, "the other messages to be counted", func() bool { return b.Stats().Unclaimed == 2 })
}

func TestCloseLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, p *pki) {
		before, _ := goroutines()
		a, b, c := start(t, p.config(t, "n1")), start(t, p.config(t, "n2")), start(t, p.config(t, "n3"))
		var inside atomic.Int64
		for _, n := range []*Transport{a, b, c} {
			n.Handle(ledger, func(string, [][]byte) {
				inside.Add(1)
				defer inside.Add(-1)
			})
		}
		meet(t, a, b, c)
		a.SetPeer("n4", "127.0.0.1:1") // no node listens there
		for range 1000 {
			a.Send("n2", number(0))
			a.Send("n3", number(0))
			a.Send("n4", number(0))
		}
		for _, n := range []*Transport{a, b, c} {
			if err := errors.Join(n.Close(), n.Close()); err != nil {
				t.Error(err)
			}
		}
		if inside.Load() != 0 {
			t.Error("a receive runs after Close")
		}
		a.SetPeer("n5", "127.0.0.1:1")
		a.Send("n2", number(0))
		await(t, "all goroutines to end", func() bool { n, _ := goroutines(); return n <= before })
		if s := a.Stats(); s.Sent+s.Dropped != 3001 {
			t.Errorf("%+v", s)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	p := newPKI(t)
	for want, change := range map[string]func(c *Config){
		"not a name of a node":                          func(c *Config) { c.Node = "n 1" },
		"Topology must have at most 255 bytes, got 256": func(c *Config) { c.Topology = strings.Repeat("a", 256) },
		"not a trust domain":                            func(c *Config) { c.TrustDomain = "Example" },
		"set only one of them":                          func(c *Config) { c.Insecure = true },
		"QueueMessages must be at least 1":              func(c *Config) { c.QueueMessages = -1 },
		"MessageBytesMax must be at least":              func(c *Config) { c.MessageBytesMax = 10 },
		"no such file":                                  func(c *Config) { c.TLS.Key = "none" },
		"is for spiffe://example.org/":                  func(c *Config) { c.Node = "n2" },
		"missing port":                                  func(c *Config) { c.Address = "localhost" },
		"can be reached from other":                     func(c *Config) { c.TLS, c.Address = nil, ":0" },
		"set TLS (topoctl certs makes":                  func(c *Config) { c.TLS, c.Address = nil, "0.0.0.0:0" },
	} {
		c := p.config(t, "n1")
		change(&c)
		n, err := Listen(c)
		if err == nil {
			n.Close()
			t.Errorf("no error, want one with %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant one with %q", err, want)
		}
	}
	c := p.config(t, "n1")
	c.TLS, c.Address = nil, ":0"
	if _, err := Listen(c); !errors.Is(err, ErrInsecure) {
		t.Errorf("%v", err)
	}
	var log logged
	c.Insecure, c.Logger = true, log.logger()
	start(t, c)
	if log.count("WARN", "anyone who reaches this address can send messages") != 1 {
		t.Error(log.String())
	}

	// It does not dial other hosts either.
	log = logged{}
	c = (*pki)(nil).config(t, "n1")
	c.Logger = log.logger()
	c.Peers = map[string]string{"n2": "192.0.2.1:7101", "n1": "127.0.0.1:1"}
	a := start(t, c)
	await(t, "the reason in the log", func() bool { return log.count("192.0.2.1:7101 is not on this host") == 1 })
	if s := a.Stats(); len(s.Peers) != 1 {
		t.Errorf("the node is its own peer: %+v", s)
	}
}
