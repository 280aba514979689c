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
	startTimeout = 20 * time.Second // for a process to serve: longer than reading a log of a million entries takes
	stopTimeout  = 15 * time.Second // for a process to stop: longer than its shutdownTimeout
	startsMax    = 5                // consecutive attempts: another program may use its port for a short time
)

// cluster manages the processes of a bank, children of this one.
type cluster struct {
	dir   string
	alone bool
	nodes []*node
	ended chan error // an unexpected end of a node
}

// node is a member of the bank. Its process starts and stops.
type node struct {
	name    string
	environ []string // in addition to this process's environment

	mu           sync.Mutex
	url          string // "": not serving
	process      *exec.Cmd
	stdin        io.Closer // closing it stops the process
	exited       chan struct{}
	stopExpected bool // the process was killed or asked to stop
	ended        bool // the process has ended
}

// newCluster plans a bank with count nodes. If the folder has a bank already, its nodes
// keep their addresses, because they are in the logs.
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

// peers returns the nodes with their addresses in the format of raft.VariablePeers.
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

// freePorts returns free ports of loopback. They are below the range for outgoing
// connections. Otherwise an outgoing connection could take a node's port while the node
// is down.
func freePorts(count int) (ports []int, err error) {
	const from, to, attempts = 20000, 30000, 1000
	for range attempts {
		port := from + rand.IntN(to-from)
		l, e := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if e != nil {
			err = e
			continue
		}
		defer l.Close() // keep it open until all are found, so that none is found twice
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
	return fmt.Errorf("%s does not start: %w; the last line of its log: %s", n.name, err, c.lastLogLine(n))
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
	defer log.Close() // the process has its own copy
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
		c.watchExit(n, p)
		close(exited)
	}()
	n.mu.Lock()
	n.process, n.stdin, n.exited = p, stdin, exited
	n.stopExpected, n.ended = false, false
	n.mu.Unlock()

	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	url := ""
	select {
	case url = <-serves:
	case <-timer.C:
		err = errors.New("the process has not printed its address")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil && url == "" {
		err = errors.New("the process has ended")
	}
	if err != nil {
		n.kill()
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return errors.New("the process has ended")
	}
	n.url = url
	return nil
}

// watchExit waits for the end of a process, and reports it if it was not expected.
func (c *cluster) watchExit(n *node, p *exec.Cmd) {
	err := p.Wait()
	n.mu.Lock()
	serving, expected := n.url != "", n.stopExpected
	n.url, n.ended = "", true
	n.mu.Unlock()
	if !serving || expected {
		return
	}
	select {
	case c.ended <- fmt.Errorf("%s has ended unexpectedly: %v; the last line of its log: %s", n.name, err, c.lastLogLine(n)):
	default: // one error is enough
	}
}

// kill ends a process at once, like a power failure, and waits for its end.
func (n *node) kill() {
	n.mu.Lock()
	p, exited := n.process, n.exited
	n.stopExpected, n.url = true, ""
	n.mu.Unlock()
	if p != nil {
		_ = p.Process.Kill() // SIGKILL; fails if the process has ended
		<-exited
	}
}

// stop stops all processes, and kills a process that does not stop in time.
func (c *cluster) stop() {
	var all sync.WaitGroup
	for _, n := range c.nodes {
		n.mu.Lock()
		stdin, exited := n.stdin, n.exited
		n.stopExpected = true
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

// urls returns the URLs of the serving nodes.
func (c *cluster) urls() (list []string) {
	for _, n := range c.nodes {
		if url := n.serves(); url != "" {
			list = append(list, url)
		}
	}
	return list
}

// serves returns the URL of a node, or "" if it does not serve.
func (n *node) serves() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.url
}

func (c *cluster) logOf(n *node) string { return filepath.Join(c.dir, n.name+".log") }

// lastLogLine returns the last line of a node's log.
func (c *cluster) lastLogLine(n *node) string {
	b, err := os.ReadFile(c.logOf(n))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// untilParentEnds returns a context that ends when stdin ends. The end of the parent
// process also ends stdin, even if the parent is killed.
func untilParentEnds(ctx context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}
