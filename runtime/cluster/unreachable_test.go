package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/transport"
)

// callDesign is a topology of two nodes: an external processor on both of them calls an
// instance on n2.
func callDesign(slow time.Duration) *design {
	d := &design{nodes: 2, messages: 5, batch: 4, parts: []designPart{
		{name: "p0", external: true, placement: EveryNode},
		{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1, slow: slow},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 16, reply: true}}}
	d.groups = d.components()
	return d
}

// TestCallsToANodeThatNeverReturns ends the process of a node when it has
// received calls and answered none of them. All calls must fail after retry.timeout,
// although nothing else happens on the node that has made them: whether the failure
// detection reports the other node, or has never heard of it.
func TestCallsToANodeThatNeverReturns(t *testing.T) {
	for _, reported := range []bool{true, false} {
		s := simulate(1, callDesign(time.Hour))
		s.config.Retry.Timeout = 5 * time.Second
		s.at(20*time.Second, "n2 never returns", s.freeze(1))
		if reported {
			s.at(23*time.Second, "n1 cannot reach n2", func() { s.nodes[0].report(s.nodes[1], false) })
		}
		s.at(time.Minute, "check", func() {
			asked := 0
			for i, a := range s.ledger.asks {
				if a.node.index != 0 {
					continue
				}
				if asked++; a.replies != 1 || !errors.Is(a.err, ErrUnreachable) {
					t.Errorf("reported %v: after 40 seconds, call %d has %d replies, and the error %v", reported, i+1, a.replies, a.err)
				}
			}
			if asked == 0 {
				t.Errorf("n1 has made no call")
			}
			s.nodes[0].stop()
		})
		s.run()
		if f := s.failure(); f != "" {
			t.Errorf("reported %v: %s", reported, f)
		}
	}
}

// TestSlowHandlerIsReachable calls a handler that takes much longer than retry.timeout on a
// node that the failure detection does not know. The node acknowledges what it gets, so no
// call fails.
func TestSlowHandlerIsReachable(t *testing.T) {
	s := simulate(1, callDesign(time.Minute))
	s.config.Retry.Timeout = 2 * time.Second
	s.run()
	if f := s.failure(); f != "" {
		t.Error(f)
	}
	for i, a := range s.ledger.asks {
		if a.err != nil {
			t.Errorf("call %d: %v", i+1, a.err)
		}
	}
}

// TestDrainingWaitsOnce stops a node with many messages for a node that never returns.
// Their edge has capacity 1, so they are sent one after the other. The node must wait for
// retry.timeout once, not for each of them.
func TestDrainingWaitsOnce(t *testing.T) {
	const timeout = 10 * time.Second
	d := &design{nodes: 2, messages: 60, batch: 4, hops: 3, chain: true, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n1", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n1", with: 1},
		{name: "p2", instances: 1, placement: OnNode, node: "n2", with: 2},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 64}, {from: 1, to: 2, capacity: 1}}}
	d.groups = d.components()
	s := simulate(1, d)
	s.config.Retry.Timeout = timeout
	n1, n2 := 0, 1
	s.at(time.Millisecond, "n2 never returns", s.freeze(n2))
	s.at(time.Minute, "stop n1", func() { s.nodes[n1].stop() })
	s.at(time.Minute+timeout+leaveAfter+time.Second, "check", func() {
		if n := s.nodes[n1]; n.state == simRunning {
			t.Errorf("n1 has not ended:\n%s", n.describe())
		}
	})
	s.run()
	if f := s.failure(); f != "" {
		t.Error(f)
	}
	if n := s.ledger.edges[n1][1].sent; n < 20 {
		t.Errorf("only %d messages were sent to n2", n)
	}
}

// TestPauseOfTheSender pauses the process of a node that sends, for longer than
// retry.timeout. When it goes on, its timers come before it reads what the other node has
// sent. No message may be dropped, because the other node can be reached all the time.
func TestPauseOfTheSender(t *testing.T) {
	d := &design{nodes: 2, messages: 60, batch: 4, parts: []designPart{
		{name: "p0", instances: 1, source: true, placement: OnNode, node: "n1", with: 0},
		{name: "p1", instances: 1, placement: OnNode, node: "n2", with: 1},
	}, edges: []designEdge{{from: 0, to: 1, capacity: 4}}}
	d.groups = d.components()
	for seed := range uint64(20) {
		s := simulate(seed, d)
		s.config.Retry.Timeout = 2 * time.Second
		s.net.SetFaults(transport.Faults{DelayMin: int64(50 * time.Millisecond), DelayMax: int64(100 * time.Millisecond), Ordered: true})
		pause := time.Second + time.Duration(seed)*10*time.Millisecond
		s.at(pause, "pause n1", func() { s.nodes[0].resumeAt = pause + time.Minute })
		s.run()
		if f := s.failure(); f != "" {
			t.Error(f)
		}
		if f := s.nodes[0].top.pool.Snapshot().Edges[0]; f.Dropped > 0 {
			t.Errorf("seed %d: %d of %d messages were dropped", seed, f.Dropped, f.Sent)
		}
	}
}
