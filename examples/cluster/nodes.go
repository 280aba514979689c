package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	trustDomain   = "counters.example"
	topologyName  = "counters"     // as in topology.yml
	certsValidity = 24 * time.Hour // longer than any run
	stopTimeout   = 20 * time.Second
	logTailBytes  = 4 << 10 // of the log of a node that has failed
)

// runNodes starts this program once for each node, and waits until all processes have
// ended. When ctx ends, all of them drain.
func runNodes(ctx context.Context, out io.Writer, count, adds int) (err error) {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	nodes, err := planNodes(dir, count)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, count)
	started := 0
	for _, n := range nodes {
		if err = n.start(out, adds); err != nil {
			break
		}
		started++
		go func() { ended <- n.wait(ctx) }()
	}
	for {
		if err != nil {
			cancel() // the first error is the reason; the other nodes drain
		}
		if started == 0 {
			return err
		}
		err = cmp.Or(err, <-ended)
		started--
	}
}

// node is a process of the cluster.
type node struct {
	name    string
	dir     string
	environ []string // in addition to the environment of this process
	process *exec.Cmd
	stdin   io.Closer // closing it makes the process drain
}

// planNodes chooses names and addresses, and makes the certificates.
func planNodes(dir string, count int) (nodes []*node, err error) {
	authority, err := certs.NewAuthority(trustDomain, time.Now())
	if err != nil {
		return nil, err
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, authority.Cert, 0o600); err != nil {
		return nil, err
	}
	ports, err := freePorts(count)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for i, port := range ports {
		n := &node{name: fmt.Sprintf("n%d", i+1), dir: dir}
		nodes = append(nodes, n)
		addresses = append(addresses, fmt.Sprintf("%s=127.0.0.1:%d", n.name, port))
	}
	for _, n := range nodes {
		pair, err := authority.Issue(certs.ID{TrustDomain: trustDomain, Topology: topologyName, Node: n.name}, time.Now(), certsValidity)
		if err != nil {
			return nil, err
		}
		cert, key := n.path(".pem"), n.path(".key")
		if err := errors.Join(os.WriteFile(cert, pair.Cert, 0o600), os.WriteFile(key, pair.Key, 0o600)); err != nil {
			return nil, err
		}
		n.environ = []string{
			cluster.VariableNode + "=" + n.name,
			cluster.VariableNodes + "=" + strings.Join(addresses, ","),
			cluster.VariableAddress + "=", // the address of the node in the list
			cluster.VariableDir + "=" + dir,
			cluster.VariableCert + "=" + cert,
			cluster.VariableKey + "=" + key,
			cluster.VariableCA + "=" + ca,
			cluster.VariableTrust + "=" + trustDomain,
		}
	}
	return nodes, nil
}

// freePorts returns free ports of loopback. They are below the range for outgoing
// connections. Otherwise an outgoing connection could take the port of a node before the
// node listens.
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

func (n *node) path(suffix string) string { return filepath.Join(n.dir, n.name+suffix) }

// start starts the process. It writes to out and to its log.
func (n *node) start(out io.Writer, adds int) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(n.path(".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy
	n.process = exec.Command(executable, "-child", "-adds", strconv.Itoa(adds))
	n.process.Env = append(os.Environ(), n.environ...)
	n.process.Stdout, n.process.Stderr = out, log
	if n.stdin, err = n.process.StdinPipe(); err != nil {
		return err
	}
	if err := n.process.Start(); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	return nil
}

// wait waits for the end of the process. When ctx ends, the process drains. If this takes
// too long, it is killed.
func (n *node) wait(ctx context.Context) error {
	exited := make(chan error, 1)
	go func() { exited <- n.process.Wait() }()
	var err error
	select {
	case err = <-exited:
	case <-ctx.Done():
		_ = n.stdin.Close()
		select {
		case err = <-exited:
		case <-time.After(stopTimeout):
			_ = n.process.Process.Kill() // fails if the process has ended
			err = errors.Join(fmt.Errorf("it has not ended within %v", stopTimeout), <-exited)
		}
	}
	if err != nil {
		return fmt.Errorf("node %s: %w; the end of its log:\n%s", n.name, err, n.logTail())
	}
	return nil
}

// logTail returns the end of the log.
func (n *node) logTail() string {
	b, err := os.ReadFile(n.path(".log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-logTailBytes):])
}
