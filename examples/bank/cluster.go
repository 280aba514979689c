package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/raft"
)

const (
	startTimeout = 20 * time.Second // of a process until it serves: more than a log of a million entries takes
	stopTimeout  = 15 * time.Second // of a process that was told to end: more than its shutdownTimeout
	startsMax    = 5                // attempts in a row: its port may be taken by somebody, for a moment
)

// cluster are the processes of a bank, children of this one.
type cluster struct {
	dir   string
	alone bool
	nodes []*node
	ended chan error // one that nobody has told to
}

// node is a member of the bank, whose process comes and goes.
type node struct {
	name    string
	environ []string // besides this process's own

	mu      sync.Mutex
	url     string // "": it does not serve
	process *exec.Cmd
	stdin   io.Closer // its end tells the process to end
	exited  chan struct{}
	told    bool // to end
	over    bool // it has ended
}

// newCluster plans a bank of so many nodes. The nodes of a folder keep the addresses
// that they had at first, which stand in their logs.
func newCluster(dir string, count int, alone bool) (*cluster, error) {
	c := &cluster{dir: dir, alone: alone, ended: make(chan error, 1)}
	if alone {
		c.nodes = []*node{{name: "alone", environ: []string{raft.VariableDir + "=" + dir}}}
		return c, nil
	}
	peers, err := c.peers(count)
	if err != nil {
		return nil, err
	}
	for i := range count {
		name := nodeName(i)
		c.nodes = append(c.nodes, &node{name: name, environ: []string{
			raft.VariableDir + "=" + dir, raft.VariableNode + "=" + name, raft.VariablePeers + "=" + peers,
		}})
	}
	return c, nil
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

// peers are the nodes with their addresses, as raft.VariablePeers has them.
func (c *cluster) peers(count int) (string, error) {
	path := filepath.Join(c.dir, "peers")
	if old, err := os.ReadFile(path); err == nil {
		if n := strings.Count(string(old), "="); n != count {
			return "", fmt.Errorf("%s: the bank in this folder has %d nodes", path, n)
		}
		return string(old), nil
	}
	ports, err := freePorts(count)
	if err != nil {
		return "", err
	}
	var peers []string
	for i, port := range ports {
		peers = append(peers, fmt.Sprintf("%s=127.0.0.1:%d", nodeName(i), port))
	}
	text := strings.Join(peers, ",")
	return text, os.WriteFile(path, []byte(text), 0o600)
}

// freePorts are ports of loopback where nobody listens. They lie below those that
// systems give to outgoing connections, one of which might else have a node's port
// while the node is down.
func freePorts(count int) (ports []int, err error) {
	const from, to, attempts = 20000, 30000, 1000
	for range attempts {
		port := from + rand.IntN(to-from)
		l, e := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if e != nil {
			err = e
			continue
		}
		defer l.Close() // until all are found, so that none is found twice
		if ports = append(ports, port); len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no free ports: %w", err)
}

// start starts a node and returns when it serves.
func (c *cluster) start(ctx context.Context, n *node) (err error) {
	for range startsMax {
		if err = c.tryStart(ctx, n); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not start: %w; its log ends with: %s", n.name, err, c.lastWords(n))
}

func (c *cluster) tryStart(ctx context.Context, n *node) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(c.logOf(n), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	p := exec.Command(executable, "-serve", "127.0.0.1:0", "-child")
	if c.alone {
		p.Args = append(p.Args, "-alone")
	}
	p.Env = append(os.Environ(), n.environ...)
	p.Stderr = log
	stdin, err := p.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	serves := make(chan string, 1)
	exited := make(chan struct{})
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(stdout, 1<<10)).ReadString('\n')
		serves <- strings.TrimSpace(strings.TrimPrefix(line, "serving on "))
		_, _ = io.Copy(io.Discard, stdout)
		c.await(n, p)
		close(exited)
	}()
	n.mu.Lock()
	n.process, n.stdin, n.exited = p, stdin, exited
	n.told, n.over = false, false
	n.mu.Unlock()

	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	url := ""
	select {
	case url = <-serves:
	case <-timer.C:
		err = errors.New("it does not say where it serves")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil && url == "" {
		err = errors.New("it has ended")
	}
	if err != nil {
		n.kill()
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return errors.New("it has ended")
	}
	n.url = url
	return nil
}

// await waits for the end of a process, and passes it on where nobody has asked for
// it.
func (c *cluster) await(n *node, p *exec.Cmd) {
	err := p.Wait()
	n.mu.Lock()
	serving, told := n.url != "", n.told
	n.url, n.over = "", true
	n.mu.Unlock()
	if !serving || told {
		return
	}
	select {
	case c.ended <- fmt.Errorf("%s has ended by itself: %v; its log ends with: %s", n.name, err, c.lastWords(n)):
	default: // one is enough
	}
}

// kill ends a process at once, as a loss of power does, and waits until it has ended.
func (n *node) kill() {
	n.mu.Lock()
	p, exited := n.process, n.exited
	n.told, n.url = true, ""
	n.mu.Unlock()
	if p != nil {
		_ = p.Process.Kill() // SIGKILL; fails where it has ended
		<-exited
	}
}

// stop has all processes end, and kills who does not.
func (c *cluster) stop() {
	var all sync.WaitGroup
	for _, n := range c.nodes {
		n.mu.Lock()
		stdin, exited := n.stdin, n.exited
		n.told = true
		n.mu.Unlock()
		if stdin == nil {
			continue
		}
		_ = stdin.Close()
		all.Go(func() {
			select {
			case <-exited:
			case <-time.After(stopTimeout):
				n.kill()
			}
		})
	}
	all.Wait()
}

// urls are those of the nodes that serve.
func (c *cluster) urls() (list []string) {
	for _, n := range c.nodes {
		if url := n.serves(); url != "" {
			list = append(list, url)
		}
	}
	return list
}

// serves is where a node serves; "": it does not.
func (n *node) serves() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.url
}

func (c *cluster) logOf(n *node) string { return filepath.Join(c.dir, n.name+".log") }

// lastWords is the last line of a node's log.
func (c *cluster) lastWords(n *node) string {
	b, err := os.ReadFile(c.logOf(n))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// untilParentEnds is the other end of stdin: ctx ends with the parent, however that
// ends.
func untilParentEnds(ctx context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}
