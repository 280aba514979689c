package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/generated_test/clusterclient"
	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	clientNodes = 3
	deskNode    = 1 // index of the node with the processor desk
)

// runServer runs a node until SIGTERM.
func runServer() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	top, err := clusterclient.New(clusterclient.Processors{})
	if err != nil {
		return err
	}
	return top.Run(ctx)
}

// servers are the nodes of a cluster, each in a process of its own.
type servers struct {
	t         *testing.T
	dir       string
	ca        *certs.Authority
	addresses []string
	processes [clientNodes]*clientProcess
}

// clientProcess is a run of a node.
type clientProcess struct {
	cmd    *exec.Cmd
	output output
	done   chan struct{} // closed when it has ended
}

// startServers starts all nodes.
func startServers(t *testing.T) *servers {
	t.Helper()
	speed.Landing(t) // TestClusterGatherClient has nodes in this process; runtime/cluster simulates clients
	speed.NoRace(t)
	if runtime.GOOS == "windows" {
		t.Skip("the nodes are killed with signals")
	}
	rerun.WhenCodeChanges(t)
	s := &servers{t: t, dir: t.TempDir(), addresses: loopback.Addresses(t, clientNodes)}
	var err error
	if s.ca, err = certs.NewAuthority(domain, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.write("ca.crt", s.ca.Cert)
	for i := range clientNodes {
		s.issue(nodeName(i), certs.ID{Node: nodeName(i)})
	}
	s.issue("client", certs.ID{Client: "web"})
	return s
}

func (s *servers) path(file string) string { return filepath.Join(s.dir, file) }

func (s *servers) write(file string, b []byte) {
	s.t.Helper()
	if err := os.WriteFile(s.path(file), b, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// issue makes the files of a certificate.
func (s *servers) issue(file string, id certs.ID) {
	s.t.Helper()
	id.TrustDomain, id.Topology = domain, "clusterclient"
	pair, err := s.ca.Issue(id, time.Now(), time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(file+".crt", pair.Cert)
	s.write(file+".key", pair.Key)
}

// nodeList is the value of TOPOGEN_NODES.
func (s *servers) nodeList() string {
	var list []string
	for i, address := range s.addresses {
		list = append(list, nodeName(i)+"="+address)
	}
	return strings.Join(list, ",")
}

// start starts the process of a node.
func (s *servers) start(i int, env ...string) {
	s.t.Helper()
	p := &clientProcess{cmd: child.Command(childServer), done: make(chan struct{})}
	p.cmd.Env = append(p.cmd.Env,
		clusterclient.VariableDir+"="+s.dir, "TOPOGEN_NODE="+nodeName(i), "TOPOGEN_NODES="+s.nodeList(), "TOPOGEN_DIR="+s.path("nodes"),
		"TOPOGEN_TRUST_DOMAIN="+domain, "TOPOGEN_TLS_CERT="+s.path(nodeName(i)+".crt"), "TOPOGEN_TLS_KEY="+s.path(nodeName(i)+".key"), "TOPOGEN_TLS_CA="+s.path("ca.crt"))
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.processes[i] = p
	go func() {
		_ = p.cmd.Wait() // the test kills it
		close(p.done)
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error means that it has ended
		<-p.done
		if s.t.Failed() {
			s.t.Logf("%s: %v\n%s", nodeName(i), p.cmd.ProcessState, &p.output)
		}
	})
}

func (s *servers) startAll() *servers {
	s.t.Helper()
	for i := range clientNodes {
		s.start(i)
	}
	return s
}

// kill ends the process of a node with SIGKILL, and waits until it has ended.
func (s *servers) kill(i int) {
	s.t.Helper()
	if err := s.processes[i].cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.processes[i].done
}

// config is the configuration of a client with a certificate.
func (s *servers) config() cluster.ClientConfig {
	return cluster.ClientConfig{
		Addresses: s.addresses, TLSCert: s.path("client.crt"), TLSKey: s.path("client.key"), TLSCA: s.path("ca.crt"), Wait: awaitMax,
	}
}

// client makes a client. The test closes it.
func (s *servers) client(c cluster.ClientConfig) *clusterclient.Client {
	s.t.Helper()
	x, err := clusterclient.NewClient(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

// await waits for a condition.
func (s *servers) await(what string, condition func() bool) {
	s.t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(awaitMax); !condition(); <-poll.C {
		if time.Now().After(end) {
			s.t.Fatalf("timeout while waiting for %s", what)
		}
	}
}

// awaitAll waits until a client reaches all nodes directly.
func (s *servers) awaitAll(c *clusterclient.Client) {
	s.t.Helper()
	s.await("connections to all nodes", func() bool { return s.reached(c) == clientNodes })
}

func (s *servers) reached(c *clusterclient.Client) (n int) {
	for _, node := range c.Cluster().Nodes {
		if node.Reachable {
			n++
		}
	}
	return n
}

// reaches reports whether a client reaches a node.
func reaches(c *clusterclient.Client, i int) bool {
	for _, node := range c.Cluster().Nodes {
		if node.Name == nodeName(i) {
			return node.Reachable
		}
	}
	return false
}

// effects returns how often each message of a client was handled, by its number.
func (s *servers) effects(processor, client string) map[int]int {
	s.t.Helper()
	seen := map[int]int{}
	files, err := filepath.Glob(s.path(processor + "-*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var from string
			var n int
			if _, err := fmt.Sscan(line, &from, &n); err != nil {
				s.t.Fatalf("%s: %q: %v", file, line, err)
			}
			if from == client {
				seen[n]++
			}
		}
	}
	return seen
}

// closeAll closes a client whose messages must all have been handled.
func (s *servers) closeAll(c *clusterclient.Client) {
	s.t.Helper()
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Errorf("Close: %v", err)
	}
	for i, e := range c.Snapshot().Edges {
		if e.Sent != e.Received || e.Dropped != 0 || e.Len != 0 {
			s.t.Errorf("%v: %+v", clusterclient.EdgeIndex(i), e)
		}
	}
}

// checkOnceInEachProcess fails the test if a process has handled a message twice.
func (s *servers) checkOnceInEachProcess(client string) {
	s.t.Helper()
	files, _ := filepath.Glob(s.path("counter-*")) // the pattern is valid
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(string(b)) {
			if seen[line] {
				s.t.Errorf("%s: the process has handled %q twice", filepath.Base(file), line)
			}
			seen[line] = true
		}
	}
}

// bootOf is the id of the process of a node, as a client knows it.
func bootOf(c *clusterclient.Client, i int) string {
	for _, node := range c.Cluster().Nodes {
		if node.Name == nodeName(i) {
			return node.Boot
		}
	}
	return ""
}

// way lets the connections of a client be cut, by address.
type way struct {
	mu    sync.Mutex
	cut   map[string]bool
	conns map[net.Conn]string
}

func newWay() *way { return &way{cut: map[string]bool{}, conns: map[net.Conn]string{}} }

var errCut = errors.New("the way is cut")

func (w *way) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut[address] {
		_ = conn.Close()
		return nil, errCut
	}
	w.conns[conn] = address
	return conn, nil
}

// set cuts or heals the way to an address.
func (w *way) set(address string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[address] = cut
	for conn, to := range w.conns {
		if to == address && cut {
			_ = conn.Close()
			delete(w.conns, conn)
		}
	}
}

// askPlaces asks a node for the address table, as the client of a plan does.
func askPlaces(ctx context.Context, conn *gogrpc.ClientConn, plan string) error {
	return conn.Invoke(ctx, "/topogen.cluster.Clients/Places", wrapperspb.String(plan+"\n"), new(wrapperspb.BytesValue))
}

// openStream opens the stream of a client to a node. It returns false if the node refuses it.
func openStream(ctx context.Context, conn *gogrpc.ClientConn, name string) bool {
	ctx = metadata.AppendToOutgoingContext(ctx, "topogen-client", name)
	stream, err := conn.NewStream(ctx, &gogrpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/topogen.cluster.Clients/Connect")
	if err != nil {
		return false
	}
	header, err := stream.Header()
	return err == nil && header != nil
}
