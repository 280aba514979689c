package durabletests_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/generated_test/durablenodes"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// world notes the steps.
type world struct {
	mu    sync.Mutex
	steps []string
}

func (w *world) step(order string, step int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, fmt.Sprint(order, " ", step))
	return nil
}

// newNode makes a topology. The function changes the nodes of the ledger, and with them
// those of the store.
func newNode(t *testing.T, w *world, nodes func(*raft.Config), opts ...pool.Option) *durablenodes.Topology {
	t.Helper()
	topology, err := durablenodes.New(durablenodes.Processors{
		Orders: func(topo.Instance) (*durablenodes.Orders, error) { return &durablenodes.Orders{Step: w.step}, nil },
		Ledger: func(topo.Instance) (*durablenodes.Ledger, error) { return durablenodes.NewLedger(nodes) },
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// finishes are the processors that have finished.
type finishes []string

func (f *finishes) Finished(name string) { *f = append(*f, name) }

func (*finishes) Moved(string, int, int, int) {}

var steps = []string{"a 0", "a 1", "a 2"}

// TestDurableNodesStepper: under a Stepper the store is in memory, and needs no name of a node, no folder
// and no connection.
func TestDurableNodesStepper(t *testing.T) {
	w := new(world)
	var finished finishes
	topology := newNode(t, w, func(*raft.Config) {}, pool.Observe(&finished))
	s := topology.Stepper(1)
	for range 2 {
		if r, err := topology.Api().AskOrder(t.Context(), durablenodes.Order{ID: "a", Steps: 3}); err != nil || r.Sum != 6 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	topology.Api().Close() // no other node can send, so orders finishes before the end
	for s.Step() {
	}
	if !slices.Contains(finished, "orders") {
		t.Errorf("finished: %v", finished)
	}
	s.Stop()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.steps, steps) {
		t.Errorf("the steps are %v", w.steps)
	}
}

// TestDurableNodesOneDisk runs the program with the ledger on one disk, whatever the file says. The store
// is then on one disk too, and an option replaces it with one in a folder. The result of an
// order survives.
func TestDurableNodesOneDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, c := range []struct {
			opts []pool.Option
			made string
		}{
			{nil, filepath.Join(dir, "ledger-promises", "wal")},
			{[]pool.Option{pool.DurableStore(filepath.Join(dir, "folder"))}, filepath.Join(dir, "folder")},
		} {
			if _, err := os.Stat(c.made); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s: %v", c.made, err)
			}
			w := new(world)
			for range 2 {
				topology := newNode(t, w, func(c *raft.Config) { c.Peers, c.Dir = nil, filepath.Join(dir, "ledger") }, c.opts...)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- topology.Run(ctx) }()
				if r, err := topology.Api().AskOrder(t.Context(), durablenodes.Order{ID: "a", Steps: 3}); err != nil || r.Sum != 6 {
					t.Errorf("%+v, %v", r, err)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(c.made); err != nil || !slices.Equal(w.steps, steps) {
				t.Errorf("the steps are %v, %v", w.steps, err)
			}
		}
	})
}

// TestDurableNodesNoNode: Run and sends say which setting is missing.
func TestDurableNodesNoNode(t *testing.T) {
	topology := newNode(t, new(world), func(c *raft.Config) { c.Dir = t.TempDir() })
	const want = "durable: opening the store of the topology: raft: TOPOGEN_NODE, or Config.Node, must say which of the nodes n1, n2, n3 this is"
	if err := topology.Api().SendOrder(t.Context(), durablenodes.Order{ID: "a", Steps: 3}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
	if err := topology.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
}
