package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/broadcast"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestVerdict lists which process of a node may be connected.
func TestVerdict(t *testing.T) {
	const here, elsewhere = "10.0.0.2:1", "10.0.0.3:1"
	entry := func(boot table.Boot, state table.NodeState) *table.Node {
		return &table.Node{Name: "n2", Address: here, Boot: boot, State: state}
	}
	process := func(boot, entered uint64, address string) grpc.Process {
		return grpc.Process{Node: "n2", Boot: boot, Entered: entered, Address: address}
	}
	connected := func(boot, entered uint64) *grpc.Connected {
		return &grpc.Connected{Process: process(boot, entered, here)}
	}
	for _, c := range []struct {
		name string
		claim
		want error
	}{
		{"a name that is not in the table", claim{process: process(7, 0, here)}, nil},
		{"an expected node", claim{process: process(7, 0, elsewhere), entry: entry(0, table.Joining), alive: true}, nil},
		{"an expected node that is connected", claim{process: process(7, 0, here), entry: entry(0, table.Joining), connected: connected(5, 0)}, grpc.ErrHeld},
		{"the process in the table", claim{process: process(7, 3, elsewhere), entry: entry(7, table.Member), revision: 9, alive: true, connected: connected(5, 2)}, nil},
		{"a process that the table had before", claim{process: process(5, 2, here), entry: entry(7, table.Member), revision: 9}, grpc.ErrSuperseded},
		{"the same, although it said in its hello that it had no entry", claim{process: process(5, 0, here), entry: entry(7, table.Member), revision: 9, former: true}, grpc.ErrSuperseded},
		{"a process that the table does not have yet", claim{process: process(7, 9, elsewhere), entry: entry(5, table.Member), revision: 8, alive: true, connected: connected(5, 2)}, nil},
		{"the process before it, when the table has neither change", claim{process: process(5, 2, here), entry: entry(5, table.Member), revision: 8, connected: connected(7, 9)}, grpc.ErrSuperseded},
		{"a process that joins while the other one is connected", claim{process: process(7, 0, here), entry: entry(5, table.Member), revision: 9, connected: connected(5, 2)}, grpc.ErrHeld},
		{"a process that joins while the other one is alive", claim{process: process(7, 0, elsewhere), entry: entry(5, table.Member), revision: 9, alive: true}, grpc.ErrHeld},
		{"a process that joins after the other one has died", claim{process: process(7, 0, elsewhere), entry: entry(5, table.Member), revision: 9}, nil},
		{"a process that joins after the other one has left", claim{process: process(7, 0, elsewhere), entry: entry(5, table.Left), revision: 9, alive: true}, nil},
		{"a process that restarts where the other one was", claim{process: process(7, 0, here), entry: entry(5, table.Member), revision: 9, alive: true}, nil},
		{"two tables without an order, the other process is connected", claim{process: process(7, 3, elsewhere), entry: entry(5, table.Member), revision: 9, lossy: true, connected: connected(5, 2)}, grpc.ErrHeld},
		{"two tables without an order, this one is ahead", claim{process: process(7, 99, elsewhere), entry: entry(5, table.Member), revision: 9, lossy: true, alive: true}, grpc.ErrHeld},
		{"two tables without an order, after they were merged", claim{process: process(7, 3, elsewhere), entry: entry(5, table.Member), revision: 9, lossy: true, former: true}, grpc.ErrSuperseded},
	} {
		if err := c.verdict(); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// lossyTable is a table whose revisions have no order.
type lossyTable struct{ table.Table }

func (lossyTable) LosesChanges() bool { return true }

// TestRefusalsEndAProcess lists which answers of other nodes end a process that is in the address table.
func TestRefusalsEndAProcess(t *testing.T) {
	held, superseded := &grpc.Refusal{Kind: grpc.ErrHeld}, &grpc.Refusal{Kind: grpc.ErrSuperseded}
	unreachable := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		lossy   bool
		entered bool
		answers map[string]error
		ends    bool
	}{
		{"a process that joins", false, false, map[string]error{"n2": superseded}, false},
		{"one node knows its successor", false, true, map[string]error{"n2": superseded, "n3": nil}, true},
		{"a node sees another process", false, true, map[string]error{"n2": held, "n3": unreachable}, false},
		{"no order, all nodes see another process", true, true, map[string]error{"n2": held, "n3": unreachable}, true},
		{"no order, one node accepts it", true, true, map[string]error{"n2": held, "n3": nil}, false},
		{"no node can be reached", true, true, map[string]error{"n2": unreachable, "n3": unreachable}, false},
	} {
		n := &Node{}
		n.names = newNames(n)
		o := &opened{table: table.NewMemory().Open()}
		if c.lossy {
			o.table = lossyTable{o.table}
		}
		n.opened.Store(o)
		if c.entered {
			n.names.hasEntered(o.table.Replica())
		}
		for _, name := range []string{"n3", "n2"} {
			n.names.Tried(name, c.answers[name])
		}
		select {
		case <-n.names.ended:
			if !c.ends || !errors.Is(n.names.why, table.ErrSuperseded) {
				t.Errorf("%s: the process ends with %v", c.name, n.names.why)
			}
		default:
			if c.ends {
				t.Errorf("%s: the process goes on", c.name)
			}
		}
	}
}

// hosts are the processes of a program on real connections.
type hosts struct {
	t         *testing.T
	program   *program
	addresses map[string]string
	table     table.Opener
	tops      []*top
	stops     []context.CancelFunc
	ends      []chan error
}

// start starts a process of a node. An address of "" is that of the first member.
func (h *hosts) start(name, address string) *Node {
	h.t.Helper()
	dir := h.t.TempDir()
	top, err := h.program.newTop(func(s piper.NodeSettings) (*Node, error) {
		c := h.program.config(0, dir, nil)
		c.Nodes, c.Table, c.Retry.Timeout = h.addresses, h.table, 5*time.Second
		for _, e := range h.program.edges {
			c.Edges = append(c.Edges, fmt.Sprint(e))
		}
		return Open(c, s)
	}, piper.Node(name), piper.NodeAddress(address), piper.DrainTimeout(30*time.Second))
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	h.tops, h.stops, h.ends = append(h.tops, top), append(h.stops, cancel), append(h.ends, ended)
	go func() { ended <- top.pool.Run(ctx) }()
	return top.node
}

// end waits for the end of a process.
func (h *hosts) end(i int) error {
	h.t.Helper()
	select {
	case err := <-h.ends[i]:
		return err
	case <-time.After(time.Minute):
		h.t.Fatalf("process %d still runs", i+1)
		return nil
	}
}

// TestSecondProcessOfANode starts a second process under the name of a healthy node. With each engine of the
// address table, the healthy process keeps the name, and the second one does nothing. After the
// first one has lost its network, the second one takes its place, and the first one ends.
func TestSecondProcessOfANode(t *testing.T) {
	tables := table.NewMemory()
	for name, opener := range map[string]table.Opener{
		"a table outside of the nodes, such as etcd": func(table.Setup) (table.Table, error) { return tables.Open(), nil },
		"broadcast": broadcast.Opener(),
	} {
		t.Run(name, func(t *testing.T) {
			speed.Landing(t) // TestVerdict has the rule
			t.Parallel()     // it waits until a node counts as dead
			p := withProbe(math.MaxInt32)
			p.gated = true
			list := loopback.Addresses(t, 3)
			h := &hosts{t: t, program: p, addresses: map[string]string{"n1": list[0], "n2": list[1]}, table: opener}
			n1, healthy := h.start("n1", ""), h.start("n2", "")
			for _, n := range []*Node{n1, healthy} {
				awaitNode(t, n, "both nodes", func(v *View) bool { return stateOf(v, "n1") == "member" && stateOf(v, "n2") == "member" })
			}
			second := h.start("n2", list[2])
			awaitNode(t, second, "the refusal", func(*View) bool { return second.names.waiting() != "" })
			p.allowed.Store(20)
			awaitNode(t, healthy, "messages at the healthy process", func(v *View) bool { return v.Edges[1].Arrived >= 20 })
			if second.opened.Load() != nil {
				t.Error("the second process has opened its address table while the first one is alive")
			}
			if e := n1.table.Replica().Node("n2"); e.Boot != healthy.boot {
				t.Errorf("the table has the process %v, want the healthy one, %v", e.Boot, healthy.boot)
			}
			if text := fmt.Sprint(second.waiting()); !strings.Contains(text, "the end of the other process with its name") {
				t.Errorf("the second process waits for %s", text)
			}
			if err := healthy.close(); err != nil {
				t.Fatal(err)
			}
			awaitNode(t, second, "the second process to be a member", func(v *View) bool {
				return v.State == "running" && v.Nodes[1].Boot == second.boot.String() && v.Nodes[1].State == "member"
			})
			p.allowed.Store(40)
			awaitNode(t, second, "messages at the second process", func(v *View) bool { return v.Edges[1].Arrived >= 20 })
			h.stops[0]()
			h.stops[2]()
			for _, i := range []int{0, 2} {
				if err := h.end(i); err != nil {
					t.Errorf("process %d: %v", i+1, err)
				}
			}
			h.stops[1]()
			_ = h.end(1)
		})
	}
}
