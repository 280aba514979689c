package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport"
)

// At the end of the topology each node waits until the others know the end too, because they read
// it in an address table that may need this node for a majority. Nodes that run say so in their
// sessions (controlFinished). A process whose predecessor was killed runs no sessions. It
// asks with messages of its own, which may be lost.
const (
	farewellAsk    = 1 // the sender knows the end; does the receiver?
	farewellAnswer = 2 // the receiver knows it
)

// farewellEvery is how often a process asks again.
const farewellEvery = 100 * time.Millisecond

// farewells are the answers that a process has got.
type farewells struct {
	node *Node

	mu    sync.Mutex
	known map[string]bool // nodes that know the end
}

func (w *farewells) group() uint64 {
	return transport.GroupID(w.node.settings.Topology, "cluster/farewell")
}

// receive handles a message of a process whose predecessor was killed, or an answer to it.
func (w *farewells) receive(from string, payloads [][]byte) {
	for _, b := range payloads {
		if len(b) != 1 || isClient(from) {
			continue
		}
		w.mu.Lock()
		w.known[from] = true
		w.mu.Unlock()
		if b[0] != farewellAsk {
			continue
		}
		w.node.post(func(h *happened) { h.farewells = append(h.farewells, from) })
		if w.node.knowsEnd.Load() {
			w.send(from, farewellAnswer)
		}
	}
}

func (w *farewells) send(to string, kind byte) {
	w.node.transport.Send(to, transport.Message{Group: w.group(), Payload: []byte{kind}, Class: transport.Urgent})
}

// await keeps the address table open until all other nodes know the end or have
// ended, or for retry.timeout. Nodes that have ended before this process began do not answer. If this process is
// alone, none can answer.
func (w *farewells) await(ctx context.Context, alone bool) {
	n := w.node
	n.log.Info("topogen: the topology has finished, and the process of this node was killed before it had ended. It does not run again; start the node once more for another run",
		slog.String("node", n.settings.node))
	if n.knowsEnd.Store(true); alone {
		return
	}
	n.transport.Handle(w.group(), w.receive)
	timeout, again := time.After(n.settings.farewell(true)), time.NewTicker(farewellEvery)
	defer again.Stop()
	for {
		waits := w.missing()
		if len(waits) == 0 {
			return
		}
		for _, name := range waits {
			w.send(name, farewellAsk)
		}
		select {
		case <-again.C:
		case <-timeout:
			return
		case <-ctx.Done():
			return
		}
	}
}

// missing lists the nodes that may not know the end.
func (w *farewells) missing() (names []string) {
	n := w.node
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range n.table.Replica().Nodes() {
		if t.State < table.Left && t.Name != n.settings.node && !w.known[t.Name] && !n.hasEnded(t.Name) {
			n.links.reach(t)
			names = append(names, t.Name)
		}
	}
	return names
}
