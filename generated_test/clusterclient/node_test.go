package clusterclient

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

	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	domain   = "example.org"
	nodes    = 3
	deskNode = 1               // index of the node with the processor desk
	awaitMax = 2 * time.Minute // far more than anything takes on a busy computer
)

// TestMain runs a node if the environment names one.
func TestMain(m *testing.M) {
	if os.Getenv(cluster.VariableNode) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	top, err := New(Processors{})
	if err == nil {
		err = top.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
}

// servers are the nodes of a cluster, each in a process of its own.
type servers struct {
	t         *testing.T
	dir       string
	ca        *certs.Authority
	addresses []string
	processes [nodes]*process
}

// process is a run of a node.
type process struct {
	cmd    *exec.Cmd
	output output
	done   chan struct{} // closed when it has ended
}

// output collects what a process writes.
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

// startServers starts all nodes.
func startServers(t *testing.T) *servers {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the nodes are killed with signals")
	}
	rerun.WhenCodeChanges(t)
	s := &servers{t: t, dir: t.TempDir()}
	for range nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		s.addresses = append(s.addresses, l.Addr().String())
	}
	var err error
	if s.ca, err = certs.NewAuthority(domain, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.write("ca.crt", s.ca.Cert)
	for i := range nodes {
		s.issue(name(i), certs.ID{Node: name(i)})
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
		list = append(list, name(i)+"="+address)
	}
	return strings.Join(list, ",")
}

// start starts the process of a node.
func (s *servers) start(i int, env ...string) {
	s.t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(),
		VariableDir+"="+s.dir, "TOPOGEN_NODE="+name(i), "TOPOGEN_NODES="+s.nodeList(), "TOPOGEN_DIR="+s.path("nodes"),
		"TOPOGEN_TRUST_DOMAIN="+domain, "TOPOGEN_TLS_CERT="+s.path(name(i)+".crt"), "TOPOGEN_TLS_KEY="+s.path(name(i)+".key"), "TOPOGEN_TLS_CA="+s.path("ca.crt"))
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
			s.t.Logf("%s: %v\n%s", name(i), p.cmd.ProcessState, &p.output)
		}
	})
}

func (s *servers) startAll() *servers {
	s.t.Helper()
	for i := range nodes {
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
func (s *servers) client(c cluster.ClientConfig) *Client {
	s.t.Helper()
	x, err := NewClient(c)
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
func (s *servers) awaitAll(c *Client) {
	s.t.Helper()
	s.await("connections to all nodes", func() bool { return s.reached(c) == nodes })
}

func (s *servers) reached(c *Client) (n int) {
	for _, node := range c.Cluster().Nodes {
		if node.Reachable {
			n++
		}
	}
	return n
}

// reaches reports whether a client reaches a node.
func reaches(c *Client, i int) bool {
	for _, node := range c.Cluster().Nodes {
		if node.Name == name(i) {
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
func (s *servers) closeAll(c *Client) {
	s.t.Helper()
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Errorf("Close: %v", err)
	}
	for i, e := range c.Snapshot().Edges {
		if e.Sent != e.Received || e.Dropped != 0 || e.Len != 0 {
			s.t.Errorf("%v: %+v", EdgeIndex(i), e)
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
func bootOf(c *Client, i int) string {
	for _, node := range c.Cluster().Nodes {
		if node.Name == name(i) {
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
