package cluster

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
)

// addressed is a transport that notes the addresses of peers.
type addressed struct {
	transport.Transport
	mu    sync.Mutex
	known chan struct{} // closed and replaced at each change
	of    map[string]string
}

func (a *addressed) SetPeer(name, address string) {
	a.mu.Lock()
	a.of[name] = address
	close(a.known)
	a.known = make(chan struct{})
	a.mu.Unlock()
	a.Transport.SetPeer(name, address)
}

// await waits until a peer has an address.
func (a *addressed) await(t *testing.T, name, want string) {
	t.Helper()
	for {
		a.mu.Lock()
		got, changed := a.of[name], a.known
		a.mu.Unlock()
		if got == want {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("%s is at %q, want %q", name, got, want)
		}
	}
}

// TestAddressesFollowTheTable: a node, which has sent nothing, joins at an address and then at
// another one. The transport gets both addresses, so the next attempt goes to the new one.
func TestAddressesFollowTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := endless()
		wire := join(t, transport.NewMemory(transport.MemoryOptions{}), "n1")
		noted := &addressed{Transport: wire, of: map[string]string{}, known: make(chan struct{})}
		tables := table.NewMemory()
		c := p.config(1, t.TempDir(), tables)
		here, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
			s.Transport = noted
			return Open(c, s)
		}, piper.Node("n1"), piper.NodeAddress("n1:1"), piper.DrainTimeout(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := here.pool.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		r := &running{t: t, stop: stop, tops: []*top{here}}
		r.await("the node", func(v *View) bool { return v.State == stateRunning })
		other := tables.Open()
		defer other.Close()
		for i, address := range []string{"first:1", "second:1"} {
			if err := table.Enter(ctx, other, table.Node{Name: "n9", Address: address, Boot: table.Boot(i + 1), Plan: c.Plan}); err != nil {
				t.Fatal(err)
			}
			noted.await(t, "n9", address)
		}
		if err := table.Leave(ctx, other, "n9", 2); err != nil {
			t.Fatal(err)
		}
		stop()
		run.Wait()
	})
}
