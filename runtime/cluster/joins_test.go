package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// TestJoinsAndLeaves: nodes join and leave while others send messages. Each of them runs the
// instances that every node has, and drains at its end. The table notes that it has left, so
// that the nodes that stay can still end together.
func TestJoinsAndLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		joinAndLeave(t, endless(), speed.Pick(t, 20, 50, 1000))
	})
}

// TestJoinsUnderLoad is TestJoinsAndLeaves with sources that never pause.
func TestJoinsUnderLoad(t *testing.T) {
	speed.Landing(t)
	p := endless()
	p.burst = 0
	joinAndLeave(t, p, speed.Pick(t, 0, 50, 1000))
}

func joinAndLeave(t *testing.T, p *program, joins int) {
	const stay, atOnce = 2, 5
	p.processors = append(p.processors, part{name: "probe", instances: 1, everyNode: true})
	p.groups = append(p.groups, 2)
	p.edges = append(p.edges, [2]int{2, 1}) // each node may send to the sinks
	network := transport.NewMemory(transport.MemoryOptions{})
	tables := table.NewMemory()
	open := func(name string, leaveAfter time.Duration) *top {
		wire := join(t, network, name)
		top, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			s.Transport = wire
			c := p.config(stay, t.TempDir(), tables)
			c.Edges = []string{"source -> sink", "probe -> sink"}
			n, err := Open(c, s)
			if n != nil {
				asNode(n.core).leaveAfter = leaveAfter
			}
			return n, err
		}, piper.Node(name), piper.NodeAddress(name+":1"), piper.DrainTimeout(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return top
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{t: t, stop: stop}
	for i := range stay {
		top := open(fmt.Sprintf("n%d", i+1), leaveAfter)
		r.tops = append(r.tops, top)
		r.done.Go(func() {
			if err := top.pool.Run(ctx); err != nil {
				t.Errorf("node n%d: %v", i+1, err)
			}
		})
	}
	r.await("messages", func(v *View) bool { return v.State == stateRunning && v.Edges[0].Handled > 0 })
	for first := 0; first < joins; first += atOnce {
		var guests sync.WaitGroup
		for i := first; i < min(first+atOnce, joins); i++ {
			top := open(fmt.Sprintf("guest%d", i), 10*time.Millisecond)
			guests.Go(func() {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				ended := make(chan error, 1)
				go func() { ended <- top.pool.Run(ctx) }()
				for end := time.Now().Add(30 * time.Second); top.node.View().State != stateRunning && time.Now().Before(end); {
					<-time.After(time.Millisecond)
				}
				leave()
				if err := <-ended; err != nil {
					t.Errorf("guest %d: %v", i, err)
				}
			})
		}
		guests.Wait()
	}
	for _, n := range tables.Open().Replica().Nodes() {
		if n.State != table.Left && n.Name[0] != 'n' {
			t.Errorf("the table has the node %s with the state %v", n.Name, n.State)
		}
	}
	handled := r.tops[0].node.View().Edges[0].Handled
	r.await("messages after the last leave", func(v *View) bool { return v.Edges[0].Handled > handled })
	stop()
	r.done.Wait()
	for i, top := range r.tops {
		if top.node.core.left {
			t.Errorf("node n%d has left alone", i+1)
		}
		for _, e := range top.pool.Snapshot().Edges {
			if e.Len != 0 || e.Dropped != 0 || e.Sent != e.Received {
				t.Errorf("node n%d: %+v", i+1, e)
			}
		}
	}
	for _, fault := range p.faults {
		t.Error(fault)
	}
}
