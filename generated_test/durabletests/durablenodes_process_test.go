package durabletests_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/durablenodes"
	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/topo"
)

// effectsVariable has the file of effects.
const effectsVariable = "DURABLENODES_EFFECTS"

// topologyOfNode is the topology that a node runs.
type topologyOfNode struct {
	run func(context.Context) error
	ask func(ctx context.Context, order string, steps int) (sum int, err error)
}

// runNode runs durablenodes on a node.
func runNode() error {
	return runOrders(func(step func(order string, step int) error) (n topologyOfNode, err error) {
		t, err := durablenodes.New(durablenodes.Processors{Orders: func(topo.Instance) (*durablenodes.Orders, error) { return &durablenodes.Orders{Step: step}, nil }})
		if err != nil {
			return n, err
		}
		return topologyOfNode{t.Run, func(ctx context.Context, order string, steps int) (int, error) {
			r, err := t.Api().AskOrder(ctx, durablenodes.Order{ID: order, Steps: steps})
			return r.Sum, err
		}}, nil
	})
}

// runOrders runs a topology until the end of its input. Each line of the input asks for an
// order, and is answered with a line. step writes an effect.
func runOrders(start func(step func(order string, step int) error) (topologyOfNode, error)) error {
	file, err := os.OpenFile(os.Getenv(effectsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	t, err := start(func(order string, step int) error {
		_, err := fmt.Fprintf(file, "%s %d %s\n", order, step, os.Getenv(raft.VariableNode))
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- t.run(ctx) }()
	var out sync.Mutex
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		order, steps := "", 0
		if _, err := fmt.Sscan(input.Text(), &order, &steps); err != nil {
			cancel()
			return err
		}
		go func() {
			sum, err := t.ask(ctx, order, steps)
			out.Lock()
			defer out.Unlock()
			if err != nil {
				fmt.Println("error", order, err)
				return
			}
			fmt.Println("done", order, sum)
		}()
	}
	cancel()
	return <-ended
}

// nodesProcess is a node in a process of its own.
type nodesProcess struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   *strings.Builder

	mu      sync.Mutex
	answers map[string][]chan string // by order
	ended   chan struct{}            // closed when its output has ended
}

// cluster is three nodes.
type cluster struct {
	t       *testing.T
	dir     string
	peers   string
	address map[string]string
	effects string
	role    string
	env     func(name string) []string // what the nodes of another role need in addition

	mu    sync.Mutex
	nodes map[string]*nodesProcess
}

var names = []string{"n1", "n2", "n3"}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), effects: t.TempDir() + "/effects", address: map[string]string{}, nodes: map[string]*nodesProcess{}, role: childNode, env: func(string) []string { return nil }}
	var peers []string
	for i, address := range loopback.Addresses(t, len(names)) {
		c.address[names[i]] = address
		peers = append(peers, names[i]+"="+address)
	}
	c.peers = strings.Join(peers, ",")
	return c
}

func (c *cluster) start(name string) {
	c.t.Helper()
	p := &nodesProcess{t: c.t, name: name, answers: map[string][]chan string{}, ended: make(chan struct{}), log: new(strings.Builder)}
	p.cmd = child.Command(c.role)
	p.cmd.Env = append(p.cmd.Env, effectsVariable+"="+c.effects, raft.VariableNode+"="+name, raft.VariablePeers+"="+c.peers, raft.VariableDir+"="+c.dir)
	p.cmd.Env = append(p.cmd.Env, c.env(name)...)
	p.cmd.Stderr = p.log
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		c.t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // an error: it has ended
	go p.read(stdout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = p
}

// read passes the lines of the output to the callers of ask.
func (p *nodesProcess) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			continue
		}
		p.mu.Lock()
		for _, answer := range p.answers[words[1]] {
			answer <- lines.Text()
		}
		delete(p.answers, words[1])
		p.mu.Unlock()
	}
	close(p.ended)
}

// ask asks for an order. It returns "" if the node ends before its answer.
func (p *nodesProcess) ask(order string, steps int) string {
	answer := make(chan string, 1)
	p.mu.Lock()
	p.answers[order] = append(p.answers[order], answer)
	_, err := fmt.Fprintln(p.stdin, order, steps)
	p.mu.Unlock()
	if err != nil {
		return ""
	}
	select {
	case line := <-answer:
		return line
	case <-p.ended:
		return ""
	}
}

// kill ends a node with SIGKILL.
func (c *cluster) kill(name string) {
	c.t.Helper()
	c.mu.Lock()
	p := c.nodes[name]
	delete(c.nodes, name)
	c.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-p.ended
	_ = p.cmd.Wait() // an error: it was killed
}

// close ends all nodes in order, at the same time.
func (c *cluster) close() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.nodes {
		_ = p.stdin.Close()
	}
	for _, p := range c.nodes {
		<-p.ended
		if err := p.cmd.Wait(); err != nil {
			c.t.Errorf("%s: %v\n%s", p.name, err, p.log)
		}
	}
	clear(c.nodes)
}

// some returns one of the nodes that run; which one depends on i.
func (c *cluster) some(i int) *nodesProcess {
	c.mu.Lock()
	defer c.mu.Unlock()
	var running []*nodesProcess
	for _, name := range names {
		if p := c.nodes[name]; p != nil {
			running = append(running, p)
		}
	}
	return running[i%len(running)]
}

// leader waits until a node leads the group of the store, and returns its name.
func (c *cluster) leader() string {
	c.t.Helper()
	for {
		for _, name := range names {
			r, err := raft.Operate(c.t.Context(), c.address[name], nil, raft.Command{Do: "status"})
			if c.t.Context().Err() != nil {
				c.t.Fatal("no node leads")
			}
			for _, g := range r.Groups {
				if err == nil && g.Group == "ledger-promises" && g.Role == "leader" {
					return name
				}
			}
		}
	}
}

// effect is a step that was carried out, perhaps by a process that could not record it.
type effect struct {
	order string
	step  int
	node  string
}

func (c *cluster) readEffects() (list []effect) {
	c.t.Helper()
	text, err := os.ReadFile(c.effects)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e effect
		if _, err := fmt.Sscan(line, &e.order, &e.step, &e.node); err != nil {
			break // it is being written
		}
		list = append(list, e)
	}
	return list
}

// awaitEffects waits until there are so many effects. Other processes write them.
func (c *cluster) awaitEffects(n int) {
	c.t.Helper()
	for len(c.readEffects()) < n {
		select {
		case <-time.After(time.Millisecond):
		case <-c.t.Context().Done():
			c.t.Fatalf("there are fewer than %d effects", n)
		}
	}
}

// nodesOf are the nodes that have carried out steps.
func nodesOf(list []effect) []string {
	var nodes []string
	for _, e := range list {
		if !slices.Contains(nodes, e.node) {
			nodes = append(nodes, e.node)
		}
	}
	return nodes
}
