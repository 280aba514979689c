package raft

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestMessagesThatGrow: a small message that would take a hundred times as much memory when it is
// parsed is refused. A parsed message counts with the memory that it takes.
func TestMessagesThatGrow(t *testing.T) {
	const own = 77
	many := func(field protowire.Number, n int) []byte {
		empty := protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), nil)
		return append(envelope{kindRaft, own, 1}.append(nil), bytes.Repeat(empty, n)...)
	}
	for what, b := range map[string][]byte{
		"entries":   many(7, 1<<20),
		"snapshots": many(9, 1),
		"responses": many(14, 1),
		"truncated": append(many(7, 1), 7<<3|2),
	} {
		if _, err := openPeerMessage("evil", own, b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	m, err := openPeerMessage("n2", own, many(7, 1000))
	if err != nil || m.bytes < 100*1000 {
		t.Errorf("1000 entries count as %d bytes, %v", m.bytes, err)
	}
}

// TestLargestMessageOfPeers: a listener drops messages from a node that are larger than the limit
// for messages between nodes.
func TestLargestMessageOfPeers(t *testing.T) {
	c := &Config{Topology: "t", Group: "g", Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:0"}}
	s, err := listen(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.leave(); err != nil {
			t.Error(err)
		}
	}()
	evil, err := grpc.Listen(grpc.Config{
		Node: "evil", Topology: "t", Version: wireVersion, Address: "127.0.0.1:0",
		Peers: map[string]string{"n1": s.Addr().String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = evil.Close() }()
	sizes := make(chan int, 64)
	s.Handle(1, func(_ string, payloads [][]byte) {
		for _, b := range payloads {
			sizes <- len(b)
		}
	})
	for connected := false; !connected; { // before the connection is up, messages are dropped
		evil.Send("n1", transport.Message{Group: 1})
		select {
		case <-sizes:
			connected = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	dropped := evil.Stats().Dropped
	evil.Send("n1", transport.Message{Group: 1, Payload: make([]byte, 2*entryBytesMax)}, transport.Message{Group: 1, Payload: make([]byte, entryBytesMax)})
	size := 0
	for size == 0 { // skip the empty messages that were sent before
		size = <-sizes
	}
	if n := evil.Stats().Dropped - dropped; size != entryBytesMax || n != 1 {
		t.Errorf("the first received message has %d bytes, and %d messages were dropped; want %d bytes and 1", size, n, entryBytesMax)
	}
}

// TestFreePortsAreNotShared: nodes whose addresses have port 0 have transports of their own, even if they
// have the same name. Otherwise the peers of one node would replace those of the other.
func TestFreePortsAreNotShared(t *testing.T) {
	ports := map[string]bool{}
	for _, c := range []Config{{Node: "n1", Group: "a"}, {Node: "n1", Group: "b"}, {Node: "n1", Group: "a"}, {Node: "n2", Group: "a"}} {
		c.Topology, c.Peers = "t", map[string]string{c.Node: "127.0.0.1:0"}
		s, err := listen(&c)
		if err != nil {
			t.Fatalf("%s in %s: %v", c.Node, c.Group, err)
		}
		defer func() {
			if err := s.leave(); err != nil {
				t.Error(err)
			}
			listeners.Lock()
			defer listeners.Unlock()
			if listeners.byAddress[s.Addr().String()] != nil {
				t.Errorf("%s is still registered", s.Addr())
			}
		}()
		ports[s.Addr().String()] = true
	}
	if len(ports) != 4 {
		t.Errorf("4 nodes listen on %v", ports)
	}
}
