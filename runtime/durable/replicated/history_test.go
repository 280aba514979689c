package replicated_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/oracle"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestHistories checks the histories of clients that ask all nodes, while nodes that lead
// are cut off or stopped. A server that carries out the requests one after the other must
// give the same responses. Each client sends 10 requests about each of the trees.
func TestHistories(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trees := speed.Pick(t, 6, 12, 3000)
		g := openGroup(t, engine.Config{Core: core.Config{RetryTimeout: oracle.NoRetry}, Clock: oracle.NewClock()}, time.Second)
		faults := &faults{group: g}
		l := &oracle.Load{Clock: g.engine.Clock.(oracle.Clock), Send: g.send, Clients: 4, Trees: trees, Each: 10, Failures: true, Begin: faults.begin}
		history, err := l.Run(uint64(trees))
		if err != nil {
			t.Fatal(err)
		}
		outcomes, err := history.Check()
		t.Logf("%d requests: %v", len(history), outcomes)
		if err != nil {
			t.Error(err)
		}
	})
}

// send sends a request to a random node. The request and the response are under way for up to a
// millisecond, so that requests of different clients overlap in virtual time.
func (g *group) send(ctx context.Context, request []byte) ([]byte, oracle.Outcome, error) {
	r, err := protocol.DecodeRequest(request)
	if err != nil {
		return nil, oracle.NotCarried, err
	}
	underWay := func() { time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond) }
	underWay()
	defer underWay()
	n := g.node(names[rand.IntN(len(names))])
	if n == nil {
		return nil, oracle.NotCarried, errDown
	}
	result, err := n.Do(ctx, r.Op)
	switch {
	case errors.Is(err, errDown): // the request was forwarded to a node that does not run
		return nil, oracle.NotCarried, err
	case err != nil:
		return nil, oracle.Unknown, err
	case result.Status == protocol.Unavailable:
		return nil, oracle.NotCarried, errDown
	case result.Status == protocol.Internal:
		return nil, oracle.Unknown, errDown
	}
	return protocol.AppendResponse(nil, &r, &result), oracle.Answered, nil
}

// faults breaks the node that leads when the first client begins with a tree.
type faults struct {
	group *group
	cut   string // the node that is cut off
	down  string // the node that is stopped
}

func (f *faults) begin(client, tree int) {
	if client != 0 {
		return
	}
	if f.cut != "" {
		f.group.cut(f.cut, false)
	}
	if f.down != "" {
		f.group.start(f.down)
	}
	f.cut, f.down = "", ""
	switch tree % 3 {
	case 1:
		f.cut = f.group.leader()
		f.group.cut(f.cut, true)
	case 2:
		f.down = f.group.leader()
		f.group.stop(f.down)
	}
}

// cut cuts or restores the links of a node.
func (g *group) cut(name string, cut bool) {
	for _, other := range names {
		if other != name {
			g.network.Cut(name, other, cut)
			g.network.Cut(other, name, cut)
		}
	}
}
