package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/generated_test/clusterclient"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestClusterClientClientsAreRefused makes clients that the nodes must not accept. Each error says what to
// do.
func TestClusterClientClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := startServers(t).startAll()
	good := s.config()
	c := s.client(good) // the nodes have started
	s.closeAll(c)
	s.issue("other", certs.ID{Client: "other"})
	other := func(id certs.ID) func(*cluster.ClientConfig) {
		id.TrustDomain = domain
		pair, err := s.ca.Issue(id, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		file := "refused" + id.Node + id.Client
		s.write(file+".crt", pair.Cert)
		s.write(file+".key", pair.Key)
		return func(c *cluster.ClientConfig) { c.TLSCert, c.TLSKey = s.path(file+".crt"), s.path(file+".key") }
	}
	const short = 500 * time.Millisecond // these nodes never answer
	for name, c := range map[string]struct {
		change func(c *cluster.ClientConfig)
		want   []string
	}{
		"no certificate": {func(c *cluster.ClientConfig) { c.TLSCert, c.TLSKey, c.TLSCA, c.Wait = "", "", "", short },
			[]string{"no node of the cluster has answered within 500ms", "TOPOGEN_TLS_CERT", "topoctl certs --client NAME"}},
		"no key":               {func(c *cluster.ClientConfig) { c.TLSKey = "" }, []string{"TLS needs a certificate, its key and a CA", "TOPOGEN_TLS_KEY"}},
		"a node's certificate": {other(certs.ID{Topology: "clusterclient", Node: "n1"}), []string{"n1 is not a client or an operator", "topoctl certs --client NAME"}},
		"another topology": {func(c *cluster.ClientConfig) {
			other(certs.ID{Topology: "bank", Client: "bank"})(c)
			c.Wait = short
		}, []string{"clusterclient/n", "which is not a node of topology"}},
		"no address":           {func(c *cluster.ClientConfig) { c.Addresses, c.Wait = []string{"127.0.0.1:1"}, short }, []string{"127.0.0.1:1", "refused"}},
		"a long time to retry": {func(c *cluster.ClientConfig) { c.Retry = time.Hour }, []string{"TOPOGEN_CLIENT_RETRY", "at most 9m0s", "1h0m0s"}},
		"a negative time":      {func(c *cluster.ClientConfig) { c.Wait = -1 }, []string{"Wait must not be negative"}},
		"another host, no TLS": {func(c *cluster.ClientConfig) {
			*c = cluster.ClientConfig{Addresses: []string{"192.0.2.1:1"}, Wait: short}
		}, []string{"not on this host", "set TLS"}},
		"files that do not exist": {func(c *cluster.ClientConfig) { c.TLSCert, c.Wait = s.path("none.crt"), short }, []string{"none.crt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good
			c.change(&config)
			x, err := clusterclient.NewClient(config)
			if err == nil {
				t.Fatal("the client was accepted", x.Close())
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got the error %q, want one with %q", err, want)
				}
			}
		})
	}
	t.Run("commands of operators", func(t *testing.T) {
		files := &grpc.TLS{Cert: good.TLSCert, Key: good.TLSKey, CA: good.TLSCA}
		_, err := cluster.Operate(t.Context(), s.addresses[0], files, cluster.Command{Show: cluster.ShowStatus})
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "is not an operator") {
			t.Errorf("a command with the certificate of a client: %v", err)
		}
	})
}

// TestClusterClientOtherTopology runs a client whose code is not that of the nodes.
func TestClusterClientOtherTopology(t *testing.T) {
	t.Parallel()
	s := startServers(t).startAll()
	s.closeAll(s.client(s.config()))
	// The client has the hash of its own plan, so another topology file would need another
	// package. Here the request has another hash.
	conn, err := grpc.Dial(s.addresses[0], &grpc.TLS{Cert: s.path("client.crt"), Key: s.path("client.key"), CA: s.path("ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = askPlaces(t.Context(), conn, "another plan")
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "another version of topology clusterclient: generate its code") {
		t.Errorf("got the error %v", err)
	}
}

// TestClusterClientSettingsOfClients sets the times by fields and by the environment.
func TestClusterClientSettingsOfClients(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	refused := func(c cluster.ClientConfig) string {
		c.Addresses = []string{nobody}
		_, err := clusterclient.NewClient(c)
		if err == nil {
			t.Fatal("there is no node")
		}
		return err.Error()
	}
	check := func(name, got, want string) {
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	check("a field", refused(cluster.ClientConfig{Wait: 20 * time.Millisecond}), "within 20ms")
	t.Setenv("TOPOGEN_CLIENT_WAIT", "30ms")
	check("the environment", refused(cluster.ClientConfig{}), "within 30ms")
	check("a field before the environment", refused(cluster.ClientConfig{Wait: 20 * time.Millisecond}), "within 20ms")
	t.Setenv("TOPOGEN_CLIENT_RETRY", "11m")
	check("a large value", refused(cluster.ClientConfig{}), "at most 9m0s, got 11m0s")
	t.Setenv("TOPOGEN_CLIENT_RETRY", "soon")
	check("no duration", refused(cluster.ClientConfig{}), `TOPOGEN_CLIENT_RETRY must be a duration such as 30s, got "soon"`)
}

// TestClusterClientNoNodeReturns kills all nodes. Messages that wait longer than Retry are
// dropped and counted, and an Ask fails.
func TestClusterClientNoNodeReturns(t *testing.T) {
	t.Parallel()
	s := startServers(t).startAll()
	config := s.config()
	config.Retry = 300 * time.Millisecond
	c := s.client(config)
	s.awaitAll(c)
	for i := range clientNodes {
		s.kill(i)
	}
	s.await("the notice of their deaths", func() bool { return s.reached(c) == 0 })
	if _, err := c.Phone().AskOrder(t.Context(), clusterclient.Order{Client: "c"}); !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, topo.ErrFailed) || strings.Contains(err.Error(), "handler") {
		t.Errorf("an Ask without nodes: %v", err)
	}
	for n := range 10 {
		if err := c.Phone().SendNote(t.Context(), clusterclient.Note{Client: "c", N: n}); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if f := c.Snapshot().Edges[clusterclient.EdgePhoneDeskNote]; f.Sent != 10 || f.Dropped != 10 || f.Len != 0 {
		t.Errorf("the figures of the notes are %+v", f)
	}
}

// TestClusterClientCloseWithoutNodes closes a client whose messages cannot be delivered before the drain
// timeout. Close says so, and the figures have them.
func TestClusterClientCloseWithoutNodes(t *testing.T) {
	s := startServers(t).startAll()
	t.Setenv("TOPOGEN_DRAIN_TIMEOUT", "200ms")
	config := s.config()
	config.Retry = 5 * time.Minute
	c := s.client(config)
	s.awaitAll(c)
	for i := range clientNodes {
		s.kill(i)
	}
	for n := range 10 {
		if err := c.Phone().SendNote(t.Context(), clusterclient.Note{Client: "c", N: n}); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(); !errors.Is(err, pool.ErrDrainTimeout) {
		t.Errorf("Close: %v", err)
	}
	if f := c.Snapshot().Edges[clusterclient.EdgePhoneDeskNote]; f.Sent != 10 || f.Len != 10 {
		t.Errorf("the figures of the notes are %+v", f)
	}
	if err := c.Phone().SendNote(context.Background(), clusterclient.Note{}); !errors.Is(err, topo.ErrStopping) {
		t.Errorf("a message to a client that is closed: %v", err)
	}
}

// TestClusterClientTooManyClients fills the clients that the node with the orders remembers for one
// certificate. An Ask of a further client fails soon, and the error says why. The client
// goes on when there is room again.
func TestClusterClientTooManyClients(t *testing.T) {
	t.Parallel()
	const (
		most    = 256 // as in docs/howto/clients.md
		perConn = 4   // streams of a client
	)
	s := startServers(t).startAll()
	s.issue("first", certs.ID{Client: "first"}) // the node may remember this client for longer
	first := s.config()
	first.TLSCert, first.TLSKey = s.path("first.crt"), s.path("first.key")
	s.closeAll(s.client(first)) // the nodes have started
	files := &grpc.TLS{Cert: s.path("client.crt"), Key: s.path("client.key"), CA: s.path("ca.crt")}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var conn *gogrpc.ClientConn
	for i := range most {
		if i%perConn == 0 {
			var err error
			if conn, err = grpc.Dial(s.addresses[deskNode], files); err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		s.await("room for a client", func() bool { return openStream(ctx, conn, fmt.Sprintf("CLIENT%010d", i)) })
	}
	config := s.config()
	config.Retry = 5 * time.Minute
	c := s.client(config)
	began := time.Now()
	_, err := c.Phone().AskOrder(t.Context(), clusterclient.Order{Client: "c"})
	if !errors.Is(err, cluster.ErrUnreachable) || !strings.Contains(err.Error(), "has 256 clients with the certificate") {
		t.Errorf("an Ask to a node without room: %v", err)
	}
	if took := time.Since(began); took >= config.Retry {
		t.Errorf("the Ask took %v", took)
	}
	leave()
	s.await("room for the client", func() bool { return reaches(c, deskNode) })
	if r, err := c.Phone().AskOrder(t.Context(), clusterclient.Order{Client: "c", N: 7}); err != nil || r.N != 7 {
		t.Errorf("after the others have left: got %+v and the error %v", r, err)
	}
	_ = c.Close() // the first Ask was dropped
}
