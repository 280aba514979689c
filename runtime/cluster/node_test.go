package cluster

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// TestTheNodeLooksAtEachPost posts from several goroutines while the core runs in one of
// them. Each post must be looked at, although no time comes at which the core must run.
func TestTheNodeLooksAtEachPost(t *testing.T) {
	p := newProgram()
	top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
		return Open(p.config(1, t.TempDir(), nil), s)
	}, piper.Node("n1"))
	if err != nil {
		t.Fatal(err)
	}
	n := top.node
	n.core.begin(top.border, noPlaces{})
	n.start()
	var posting sync.WaitGroup
	for range 8 {
		posting.Go(func() {
			for range 5000 {
				answer := make(chan coreView, 1)
				n.post(func(h *happened) { h.views = append(h.views, answer) })
				select {
				case <-answer:
				case <-time.After(30 * time.Second):
					t.Error("a post was not looked at for 30 seconds")
					return
				}
			}
		})
	}
	posting.Wait()
	n.stop()
	<-n.done
}

// lossy is a transport that loses frames of sessions.
type lossy struct {
	transport.Transport
	group uint64
	mu    sync.Mutex
	rand  *rand.Rand
	lost  int
}

func (l *lossy) Send(to string, messages ...transport.Message) {
	l.mu.Lock()
	var rest []transport.Message
	for _, m := range messages {
		if m.Group == l.group && l.rand.IntN(20) == 0 {
			l.lost++
			continue
		}
		rest = append(rest, m)
	}
	l.mu.Unlock()
	l.Transport.Send(to, rest...)
}

// TestProgramOnALossyNetwork runs nodes with all their goroutines and timers, on a network
// that loses every twentieth frame of the sessions. The simulation has neither.
func TestProgramOnALossyNetwork(t *testing.T) { synctest.Test(t, testLossyNetwork) }

func testLossyNetwork(t *testing.T) {
	var wires []*lossy
	newProgram().runInMemory(t, 3, func(wire transport.Transport) transport.Transport {
		l := &lossy{Transport: wire, group: transport.GroupID("program", "cluster/session"), rand: rand.New(rand.NewPCG(1, uint64(len(wires))))}
		wires = append(wires, l)
		return l
	})
	for i, w := range wires {
		if w.lost == 0 {
			t.Errorf("n%d has lost no frame", i+1)
		}
	}
}
