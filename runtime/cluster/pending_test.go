package cluster

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

const (
	pendingBytesMax  = 200 // the most that a pending message of 64 bytes costs on the sending node in a pair that is in use
	newPairBytesMax  = 320 // the same of 17 messages in a new pair, with its link, queue and segments
	usedPairMessages = 32  // messages before, in a pair that is in use
)

// TestPendingMessagesAreSmall sends messages of 64 bytes to a node that cannot be reached. The heap
// for each of them must be small, whether they come in large chunks or one after the other, in
// one pair or in many. Then the node can be reached again, and all messages are handled.
func TestPendingMessagesAreSmall(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has a heap of its own")
	}
	for _, c := range []struct{ pairs, before, burst, pending, most int }{
		{1, usedPairMessages, 5000, 10_000, pendingBytesMax},
		{1, usedPairMessages, 1, 5000, pendingBytesMax},
		{200, usedPairMessages, 5000, 200 * 17, pendingBytesMax},
		{200, usedPairMessages, 1, 200 * 17, pendingBytesMax},
		{200, 0, 5000, 200 * 17, newPairBytesMax},
	} {
		t.Run(fmt.Sprintf("pairs=%d/before=%d/burst=%d", c.pairs, c.before, c.burst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := pendingBytes(t, c.pairs, c.before*c.pairs, c.burst, c.pending); got > c.most {
					t.Errorf("a pending message costs %d bytes, want at most %d", got, c.most)
				} else {
					t.Logf("a pending message costs %d bytes", got)
				}
			})
		})
	}
}

// sparesKept is after how long a queue has no spare segments any more.
const sparesKept = 3 * time.Second

// cutTransport drops all frames while it is cut.
type cutTransport struct {
	transport.Transport
	cut *atomic.Bool
}

func (c cutTransport) Send(to string, messages ...transport.Message) {
	if !c.cut.Load() {
		c.Transport.Send(to, messages...)
	}
}

// pendingBytes returns the bytes of heap for each message that a source on n1 has sent in bursts to
// instances on n2, after other messages that n2 has handled.
func pendingBytes(t *testing.T, pairs, before, burst, pending int) int {
	p := &program{
		processors: []part{{"source", 1, true, false}, {"sink", pairs, false, false}}, edges: [][2]int{{0, 1}}, groups: []int{0, 1},
		capacity: 2 * pending, messages: before + pending, burst: burst, gated: true, load: make([]byte, 60),
		counts: map[string]int{}, runs: map[string]int{},
	}
	p.allowed.Store(int64(before))
	network, tables := transport.NewMemory(transport.MemoryOptions{}), table.NewMemory()
	var cut atomic.Bool
	var tops []*top
	for i := range 2 {
		name := fmt.Sprintf("n%d", i+1)
		wire := cutTransport{join(t, network, name), &cut}
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			s.Transport = wire
			c := p.config(2, t.TempDir(), tables)
			c.Retry.Timeout = time.Hour
			for i, node := range []string{"n1", "n2"} {
				c.Processors[i].Placement, c.Processors[i].Node = OnNode, node
			}
			return Open(c, s)
		}, piper.Node(name))
		if err != nil {
			t.Fatal(err)
		}
		tops = append(tops, top)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var running sync.WaitGroup
	for _, top := range tops {
		running.Go(func() {
			if err := top.pool.Run(ctx); err != nil {
				t.Error(err)
				cancel()
			}
		})
	}
	await := func(sent, queued int) {
		for f := tops[0].pool.Snapshot().Edges[0]; ctx.Err() == nil && (int(f.Sent) != sent || f.Len != queued); f = tops[0].pool.Snapshot().Edges[0] {
			time.Sleep(100 * time.Millisecond)
		}
	}
	await(before, 0)
	cut.Store(true)
	time.Sleep(time.Minute) // until failure detection knows
	empty := heap()
	p.allowed.Add(int64(pending))
	await(before+pending, pending)
	time.Sleep(sparesKept)
	got := (heap() - empty) / pending
	cut.Store(false)
	running.Wait()
	if err := p.check(tops); err != nil {
		t.Error(err)
	}
	return got
}

// heap is the size of the heap after a garbage collection.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what the pools released in the first collection
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
