package clusterprocesses

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/rerun"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	domain   = "example.org"
	nodes    = 4
	awaitMax = 2 * time.Minute // far more than anything takes on a busy computer
)

// fleet is a run of the nodes.
type fleet struct {
	t         *testing.T
	dir       string
	processes []*exec.Cmd
	links     [nodes][nodes]*link // from the first to the second
	done      [nodes]chan struct{}
	errs      [nodes]error
	output    [nodes]*output
}

// output is what a process prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func name(i int) string { return fmt.Sprint("n", i+1) }

// start starts the nodes and waits until each worker has handled messages.
func start(t *testing.T) *fleet {
	if os.Getenv("CI") == "" {
		t.Skip("a long test: set CI to run it")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the nodes are stopped with signals")
	}
	rerun.WhenCodeChanges(t)
	c := &fleet{t: t, dir: t.TempDir()}
	addresses := c.connect()
	var all []string
	for i, address := range addresses {
		all = append(all, name(i)+"="+address)
	}
	c.certificates()
	for i := range nodes {
		var links []string
		for j := range nodes {
			if j != i {
				links = append(links, name(j)+"="+c.links[i][j].listener.Addr().String())
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(),
			variableLinks+"="+strings.Join(links, ","), VariableDir+"="+c.dir,
			"TOPOGEN_NODE="+name(i), "TOPOGEN_NODES="+strings.Join(all, ","), "TOPOGEN_ADDRESS="+addresses[i], "TOPOGEN_DIR="+c.path("nodes"),
			"TOPOGEN_TRUST_DOMAIN="+domain, "TOPOGEN_TLS_CERT="+c.path(name(i)+".crt"), "TOPOGEN_TLS_KEY="+c.path(name(i)+".key"), "TOPOGEN_TLS_CA="+c.path("ca.crt"))
		c.output[i], c.done[i] = &output{}, make(chan struct{})
		cmd.Stdout, cmd.Stderr = c.output[i], c.output[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.processes = append(c.processes, cmd)
		go func() {
			c.errs[i] = cmd.Wait()
			close(c.done[i])
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // an error means that it has ended
			<-c.done[i]
			if t.Failed() {
				t.Logf("%s: %v\n%s", name(i), c.errs[i], c.output[i])
			}
		})
	}
	c.await("effects of all instances", func() bool {
		files, _ := filepath.Glob(c.path("[wls]*-*-n*"))
		return len(files) == 8+12+4 && c.smallest(files) > 0
	})
	return c
}

func (c *fleet) path(file string) string { return filepath.Join(c.dir, file) }

// connect makes the links.
func (c *fleet) connect() (addresses []string) {
	for range nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.t.Fatal(err)
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	for i := range nodes {
		for j := range nodes {
			if i != j {
				c.links[i][j] = newLink(c.t, addresses[j])
			}
		}
	}
	return addresses
}

func (c *fleet) certificates() {
	now := time.Now()
	ca, err := certs.NewAuthority(domain, now)
	if err != nil {
		c.t.Fatal(err)
	}
	err = os.WriteFile(c.path("ca.crt"), ca.Cert, 0o600)
	for i := range nodes {
		pair, issued := ca.Issue(certs.ID{TrustDomain: domain, Topology: "clusterprocesses", Node: name(i)}, now, time.Hour)
		err = errors.Join(err, issued, os.WriteFile(c.path(name(i)+".crt"), pair.Cert, 0o600), os.WriteFile(c.path(name(i)+".key"), pair.Key, 0o600))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// await waits until a condition holds.
func (c *fleet) await(what string, condition func() bool) {
	c.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(awaitMax); !condition(); <-poll.C {
		if time.Now().After(end) {
			c.t.Fatalf("timeout while waiting for %s", what)
		}
	}
}

func (c *fleet) smallest(files []string) int64 {
	smallest := int64(1 << 62)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			smallest = min(smallest, info.Size())
		}
	}
	return smallest
}

// handled returns the bytes of the effects at the workers of a node, or of all nodes.
func (c *fleet) handled(node string) (sum int64) {
	files, _ := filepath.Glob(c.path("worker-*-" + node + "-*"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// awaitEffects waits until each node has handled more.
func (c *fleet) awaitEffects() {
	c.t.Helper()
	for i := range nodes {
		before := c.handled(name(i))
		c.await("more effects at "+name(i), func() bool { return c.handled(name(i)) > before+1000 })
	}
}

// finish makes the sources end.
func (c *fleet) finish() {
	c.t.Helper()
	if err := os.WriteFile(c.path("finish"), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *fleet) terminate(i int) {
	c.t.Helper()
	if err := c.processes[i].Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
}

// ended waits for the end of a node, and returns its error.
func (c *fleet) ended(i int) error {
	c.t.Helper()
	c.await("the end of "+name(i), func() bool {
		select {
		case <-c.done[i]:
			return true
		default:
			return false
		}
	})
	return c.errs[i]
}

// figures returns the figures of a node after its end.
func (c *fleet) figures(i int) (edges []pool.EdgeFigures) {
	c.t.Helper()
	b, err := os.ReadFile(c.path("figures-" + name(i)))
	if err == nil {
		err = json.Unmarshal(b, &edges)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return edges
}

// sum adds up the figures of an edge.
func (c *fleet) sum(edge EdgeIndex) (sum pool.EdgeFigures) {
	c.t.Helper()
	for i := range nodes {
		f := c.figures(i)[edge]
		if f.Sent != f.Received+f.Dropped+uint64(f.Len) {
			c.t.Errorf("%s: the figures of edge %d do not add up: %+v", name(i), edge, f)
		}
		sum.Sent += f.Sent
		sum.Received += f.Received
		sum.Dropped += f.Dropped
		sum.Len += f.Len
		sum.Waiting += f.Waiting
	}
	return sum
}

// effects counts the messages that the instances of a processor have recorded. No message
// may be there twice, and those of one sender must be in order.
func (c *fleet) effects(processor string) (count uint64) {
	c.t.Helper()
	files, _ := filepath.Glob(c.path(processor + "-*"))
	seen := map[[2]int]string{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			c.t.Fatal(err)
		}
		defer f.Close()
		last := map[int]int{}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var source, n int
			if _, err := fmt.Sscan(lines.Text(), &source, &n); err != nil {
				c.t.Fatalf("%s: %q: %v", file, lines.Text(), err)
			}
			id := [2]int{source, n}
			if seen[id] != "" {
				c.t.Errorf("message %d of source %d is in %s and in %s", n, source, seen[id], filepath.Base(file))
			}
			seen[id] = filepath.Base(file)
			if n <= last[source] && processor == "worker" {
				c.t.Errorf("%s: message %d of source %d comes after %d", filepath.Base(file), n, source, last[source])
			}
			last[source] = n
		}
	}
	return uint64(len(seen))
}

// checkAll checks that nothing was lost: the counters of all processes and the effects agree.
func (c *fleet) checkAll() {
	c.t.Helper()
	for i := range nodes {
		if err := c.ended(i); err != nil {
			c.t.Errorf("%s: %v", name(i), err)
		}
	}
	if c.t.Failed() {
		return
	}
	for edge, processor := range map[EdgeIndex]string{EdgeSourceWorkerItem: "worker", EdgeSourceLedgerQuestion: "ledger", EdgeLedgerSourceAnswerForQuestion: "source"} {
		f, effects := c.sum(edge), c.effects(processor)
		if f.Dropped != 0 || f.Len != 0 || f.Waiting != 0 || f.Sent != f.Received || f.Received != effects || effects == 0 {
			c.t.Errorf("%s: %d effects, but the figures are %+v", processor, effects, f)
		}
		c.t.Logf("%s: %d messages", processor, effects)
	}
}

// both calls f with the links between two nodes.
func (c *fleet) both(a, b int, f func(l *link)) {
	f(c.links[a][b])
	f(c.links[b][a])
}

// TestLinksAreCut cuts and heals links under load. The topology finishes by itself.
func TestLinksAreCut(t *testing.T) {
	c := start(t)
	for round := range 6 {
		a, b := round%nodes, (round+1+round/nodes)%nodes
		switch round % 3 {
		case 0: // both directions
			c.both(a, b, (*link).cutAll)
			before := c.links[a][b].accepted.Load()
			c.await("a new attempt to connect", func() bool { return c.links[a][b].accepted.Load() > before })
			c.both(a, b, (*link).heal)
		case 1: // one direction
			c.links[a][b].cutAll()
			before := c.links[a][b].accepted.Load()
			c.await("a new attempt to connect", func() bool { return c.links[a][b].accepted.Load() > before })
			c.links[a][b].heal()
		default: // the connections remain, but nothing passes
			c.both(a, b, (*link).stall)
			<-time.After(300 * time.Millisecond) // the duration of the fault
			c.both(a, b, (*link).heal)
		}
		c.awaitEffects()
	}
	// One node loses all its links until the others believe that it is dead.
	for i := range nodes - 1 {
		c.both(i, nodes-1, (*link).cutAll)
	}
	c.await("the failure of "+name(nodes-1), func() bool {
		return strings.Contains(c.output[0].String(), "cannot be reached node="+name(nodes-1)+" state=dead")
	})
	for i := range nodes - 1 {
		c.both(i, nodes-1, (*link).heal)
	}
	c.awaitEffects()
	c.finish()
	c.checkAll()
}

// TestAllAreTerminated drains all nodes with SIGTERM, while links are cut.
func TestAllAreTerminated(t *testing.T) {
	c := start(t)
	c.both(0, 1, (*link).cutAll)
	for i := range nodes {
		c.terminate(i)
	}
	before := c.links[0][1].accepted.Load()
	c.await("a new attempt to connect", func() bool { return c.links[0][1].accepted.Load() > before })
	c.both(0, 1, (*link).heal)
	c.checkAll()
}

// TestOneIsTerminated drains one node with SIGTERM. It ends after everything that it has
// accepted and sent was handled, and the others go on with each other.
func TestOneIsTerminated(t *testing.T) {
	c := start(t)
	const one = 2
	c.terminate(one)
	if err := c.ended(one); err != nil {
		t.Fatalf("%s: %v", name(one), err)
	}
	for edge, f := range c.figures(one) {
		if f.Dropped != 0 || f.Len != 0 || f.Waiting != 0 || f.Sent != f.Received {
			t.Errorf("edge %d of the node that has drained: %+v", edge, f)
		}
	}
	for i := range nodes {
		if i != one {
			select {
			case <-c.done[i]:
				t.Errorf("%s has ended too: %v", name(i), c.errs[i])
			default:
			}
		}
	}
	for i := range nodes {
		if i != one {
			c.terminate(i)
		}
	}
	for i := range nodes {
		if err := c.ended(i); err != nil {
			t.Errorf("%s: %v", name(i), err)
		}
	}
	// Messages for the node that has left are dropped after retry.timeout, and counted.
	for edge, processor := range map[EdgeIndex]string{EdgeSourceWorkerItem: "worker", EdgeSourceLedgerQuestion: "ledger"} {
		f, effects := c.sum(edge), c.effects(processor)
		if f.Received != effects || f.Len != 0 || f.Dropped == 0 {
			t.Errorf("%s: %d effects, but the figures are %+v", processor, effects, f)
		}
		t.Logf("%s: %d effects, %+v", processor, effects, f)
	}
}
