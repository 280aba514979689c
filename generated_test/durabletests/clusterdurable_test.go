package durabletests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusterdurable"
	"github.com/topogen/topogen/internal/test/loopback"
	topogencluster "github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// stockStep is the step of the effects of stock, to which orders send along an ordinary edge.
const stockStep = -1

// runClusterNode runs clusterdurable on a node.
func runClusterNode() error {
	return runOrders(func(step func(order string, step int) error) (n topologyOfNode, err error) {
		t, err := clusterdurable.New(clusterdurable.Processors{
			Orders: func(topo.Instance) (*clusterdurable.Orders, error) { return &clusterdurable.Orders{Step: step}, nil },
			Stock: func(topo.Instance) (*clusterdurable.Stock, error) {
				return &clusterdurable.Stock{Take: func(order string) error { return step(order, stockStep) }}, nil
			},
		})
		if err != nil {
			return n, err
		}
		return topologyOfNode{t.Run, func(ctx context.Context, order string, steps int) (int, error) {
			r, err := t.Api().AskOrder(ctx, clusterdurable.Order{ID: order, Steps: steps})
			return r.Sum, err
		}}, nil
	})
}

// newDurableCluster makes the nodes of clusterdurable. listen has the addresses at which they
// serve the store, and nodes those of the cluster.
func newDurableCluster(t *testing.T) (c *cluster, nodes, listen []string) {
	c = newCluster(t)
	nodes, listen = loopback.Addresses(t, len(names)), loopback.Addresses(t, len(names))
	var list []string
	for i, address := range nodes {
		list = append(list, names[i]+"="+address)
	}
	dir := t.TempDir()
	c.role, c.env = childClusterNode, func(name string) []string {
		return []string{
			topogencluster.VariableNodes + "=" + strings.Join(list, ","), topogencluster.VariableDir + "=" + dir,
			"TOPOGEN_DURABLE_LISTEN=" + listen[slices.Index(names, name)],
		}
	}
	for _, name := range names {
		c.start(name)
	}
	return c, nodes, listen
}

// TestClusterDurableContinues kills a node of a cluster while it runs durable functions. The other
// nodes complete them, and no finished step is repeated. Ordinary messages of durable functions
// reach instances on all nodes.
func TestClusterDurableContinues(t *testing.T) {
	t.Parallel()
	c, _, _ := newDurableCluster(t)
	taken := func() (orders, nodes []string) {
		for _, e := range c.readEffects() {
			if e.step == stockStep {
				orders, nodes = append(orders, e.order), append(nodes, e.node)
			}
		}
		return orders, nodes
	}
	for i := 0; ; i++ { // until each node has run an order, and its instance of stock has got one
		order := fmt.Sprint("warm-", i)
		if line := c.some(i).ask(order, 1); line != fmt.Sprintf("done %s 2", order) {
			t.Fatalf("%q\n%s", line, c.some(i).log)
		}
		_, at := taken()
		if len(nodesOf(c.readEffects())) == len(names) && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(at, name) }) {
			break
		}
	}
	c.orders("killed", func() { c.kill("n2") })
	c.start("n2")
	for i := 0; ; i++ { // until n2 works again
		order := fmt.Sprint("again-", i)
		if line := c.nodes["n2"].ask(order, 1); !strings.HasPrefix(line, "done") {
			t.Fatalf("%q\n%s", line, c.nodes["n2"].log)
		}
		if slices.ContainsFunc(c.readEffects(), func(e effect) bool { return e.node == "n2" && e.order == order }) {
			break
		}
	}
	c.orders("stopped", func() { c.stop("n3") })
	c.start("n3")
	if line := c.nodes["n3"].ask("last", 1); line != "done last 2" { // it has joined
		t.Errorf("%q\n%s", line, c.nodes["n3"].log)
	}
	c.close()
}

// orders asks for orders, and lets a fault happen while they run.
func (c *cluster) orders(prefix string, fault func()) {
	c.t.Helper()
	const orders, steps = 12, 20
	before := len(c.readEffects())
	results := make([]string, orders)
	var asking sync.WaitGroup
	for i := range orders {
		asking.Go(func() {
			order := fmt.Sprint(prefix, "-", i)
			for try := i; !strings.HasPrefix(results[i], "done"); try++ { // the same id: the order is started once
				results[i] = c.some(try).ask(order, steps)
			}
		})
	}
	c.awaitEffects(before + orders*steps/3)
	fault()
	asking.Wait()
	for i, line := range results {
		if want := fmt.Sprintf("done %s-%d %d", prefix, i, steps*(steps+1)/2+1); line != want {
			c.t.Errorf("%q, want %q", line, want)
		}
	}
	last := map[string]int{}
	for _, e := range c.readEffects()[before:] {
		if e.step == stockStep {
			continue
		}
		if at, ok := last[e.order]; ok && e.step < at {
			c.t.Errorf("%s: step %d ran on %s again after step %d", e.order, e.step, e.node, at)
		}
		last[e.order] = e.step
	}
}

// stop ends a node in order, while the others go on.
func (c *cluster) stop(name string) {
	c.t.Helper()
	c.mu.Lock()
	p := c.nodes[name]
	delete(c.nodes, name)
	c.mu.Unlock()
	_ = p.stdin.Close()
	<-p.ended
	if err := p.cmd.Wait(); err != nil {
		c.t.Errorf("%s: %v\n%s", name, err, p.log)
	}
}

// TestClusterDurableClient: a client of the cluster starts executions through a node that serves
// the store, and gets none of them to run. Without the address of a node its sends are refused.
func TestClusterDurableClient(t *testing.T) {
	c, nodes, listen := newDurableCluster(t)
	if line := c.some(0).ask("first", 2); line != "done first 4" {
		t.Fatalf("%q", line)
	}
	var log bytes.Buffer
	former := slog.Default()
	defer slog.SetDefault(former)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil))) // nothing logs after Close
	client := func() *clusterdurable.Client {
		x, err := clusterdurable.NewClient(topogencluster.ClientConfig{Addresses: nodes})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := client()
	if _, err := x.Api().AskOrder(t.Context(), clusterdurable.Order{ID: "none", Steps: 1}); err == nil || !strings.Contains(err.Error(), "set TOPOGEN_DURABLE_STORE to the URL of a server") {
		t.Errorf("without a store: %v", err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("TOPOGEN_DURABLE_STORE", "http://"+listen[1])
	x = client()
	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if r, err := x.Api().AskOrder(ctx, clusterdurable.Order{ID: fmt.Sprint("client-", i), Steps: 2}); err != nil || r.Sum != 4 {
			t.Errorf("%+v, %v", r, err)
		}
		cancel()
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "ERROR") { // a worker without the function of a task logs it
		t.Errorf("the client has got executions:\n%s", log.String())
	}
	c.close()
}

// TestClusterDurableFolder: a node of a cluster refuses a store in a folder, which another node could not open.
func TestClusterDurableFolder(t *testing.T) {
	folder := t.TempDir()
	_, err := clusterdurable.New(clusterdurable.Processors{}, pool.Node("n1"), pool.NodeDir(t.TempDir()), pool.DurableStore(folder))
	if err == nil || !strings.Contains(err.Error(), "the nodes of a cluster must share a store") || errors.Unwrap(err) != nil {
		t.Errorf("%v", err)
	}
	if _, err := clusterdurable.New(clusterdurable.Processors{}, pool.DurableStore(folder)); err != nil {
		t.Errorf("in one process: %v", err)
	}
}
