package grpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// TestStrangersAreRefused: a node that does not belong to the topology can send
// nothing, and both ends log the reason once.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel() // it waits for attempts to connect
	p := newPKI(t)
	foreign := newPKI(t) // another authority with the same name
	other, err := certs.NewAuthority("example.com", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	abroad := &pki{t: t, dir: t.TempDir(), ca: other}
	// Both nodes trust both authorities, so only the name does not match.
	abroad.write("ca.crt", append(append([]byte(nil), other.Cert...), p.ca.Cert...))
	trusting := func(c *Config) {
		p.write("both.crt", append(append([]byte(nil), other.Cert...), p.ca.Cert...))
		c.TLS.CA = p.dir + "/both.crt"
	}
	for name, test := range map[string]struct {
		listener     func(c *Config)
		dialler      func() Config
		here, there  string // log entries of the listener and the dialler
		withoutCerts bool
	}{
		"topology": {
			dialler: func() Config {
				c := p.config(t, "n2")
				c.Topology = "shop"
				c.TLS = p.issue("shop", certs.ID{TrustDomain: "example.org", Topology: "shop", Node: "n2"}, time.Hour)
				return c
			},
			here:  `spiffe://example.org/shop/n2 is not in the topology of this node, \"bank\"`,
			there: `reached spiffe://example.org/bank/n1, want spiffe://example.org/shop/n1`,
		},
		"trust domain": {
			listener: trusting,
			dialler: func() Config {
				c := p.config(t, "n2")
				c.TrustDomain = "example.com"
				c.TLS = abroad.issue("n2", certs.ID{TrustDomain: "example.com", Topology: "bank", Node: "n2"}, time.Hour)
				return c
			},
			here:  `spiffe://example.com/bank/n2 is not in the trust domain of this node, \"example.org\"`,
			there: `reached spiffe://example.org/bank/n1, want spiffe://example.com/bank/n1`,
		},
		"authority": {
			dialler: func() Config { return foreign.config(t, "n2") },
			here:    `TLS: remote error: tls: bad certificate`,
			there:   `TLS: x509: certificate signed by unknown authority`,
		},
		"authority of the dialler": {
			dialler: func() Config {
				c := foreign.config(t, "n2")
				foreign.write("both.crt", append(append([]byte(nil), foreign.ca.Cert...), p.ca.Cert...))
				c.TLS.CA = foreign.dir + "/both.crt"
				return c
			},
			here:  `TLS: `,
			there: `the peer does not accept this node's certificate`,
		},
		"version": {
			dialler: func() Config {
				c := p.config(t, "n2")
				c.Version = "2"
				return c
			},
			here:  `its messages have version \"2\", the messages of this node have version \"1\"`,
			there: `its messages have version \"2\", the messages of this node have version \"1\"`,
		},
		"plain to TLS": {
			dialler: func() Config { return (*pki)(nil).config(t, "n2") },
			here:    `TLS: tls: first record does not look like a TLS handshake`,
			there:   `error reading server preface`,
		},
		"topology without TLS": {
			withoutCerts: true,
			dialler: func() Config {
				c := (*pki)(nil).config(t, "n2")
				c.Topology = "shop"
				return c
			},
			here:  `its topology is \"shop\", the topology of this node is \"bank\"`,
			there: `its topology is \"shop\", the topology of this node is \"bank\"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var here, there logged
			c := p.config(t, "n1")
			if test.withoutCerts {
				c = (*pki)(nil).config(t, "n1")
			}
			if test.listener != nil {
				test.listener(&c)
			}
			c.Logger = here.logger()
			a := start(t, c)
			y := newTally(t)
			a.Handle(ledger, y.receive)
			c = test.dialler()
			c.Logger = there.logger()
			b := start(t, c)
			b.SetPeer("n1", a.Addr().String())
			await(t, "several attempts to connect", func() bool {
				b.Send("n1", number(0))
				return a.Stats().Refused >= 2
			})
			if n := here.count("ERROR", test.here); n != 1 {
				t.Errorf("the listener logged %d times %q:\n%s", n, test.here, here.String())
			}
			if n := there.count(test.there); n != 1 {
				t.Errorf("the dialler logged %d times %q:\n%s", n, test.there, there.String())
			}
			if s := a.Stats(); s.Received+s.Unclaimed != 0 || y.from("n2") != 0 {
				t.Errorf("a message arrived: %+v", s)
			}
			if s := b.Stats(); s.Sent != 0 || s.Dropped == 0 || connected(b, a) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestWrongNodeIsRefused: the dialler checks that it reached the right node, even if
// that node would accept it.
func TestWrongNodeIsRefused(t *testing.T) {
	both(t, func(t *testing.T, p *pki) {
		var here, there logged
		c := p.config(t, "n1")
		c.Logger = here.logger()
		a := start(t, c)
		c = p.config(t, "n2")
		c.Logger = there.logger()
		b := start(t, c)
		b.SetPeer("n3", a.Addr().String()) // n1 listens there
		await(t, "both nodes to log the refusal", func() bool {
			return here.count("ERROR", `has dialled node \"n3\", this node is \"n1\"`) == 1 && there.count("ERROR", "refused", "n3", "n1") == 1
		})
		b.Send("n3", number(0))
		if s := b.Stats(); s.Sent != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOneIdentityTwice: while a process is connected, another process with the same
// name is refused.
func TestOneIdentityTwice(t *testing.T) {
	t.Parallel() // it waits for connections
	both(t, func(t *testing.T, p *pki) {
		var here, there logged
		c := p.config(t, "n1")
		c.Logger = here.logger()
		a := start(t, c)
		y := newTally(t)
		a.Handle(ledger, y.receive)
		first := start(t, p.config(t, "n2"))
		meet(t, a, first)
		first.Send("n1", number(0))
		await(t, "the message", func() bool { return y.from("n2") == 1 })

		c = p.config(t, "n2")
		c.Logger = there.logger()
		c.Peers = map[string]string{"n1": a.Addr().String()}
		second := start(t, c)
		await(t, "both nodes to log the refusal", func() bool {
			return here.count("ERROR", `another process is connected as \"n2\"`) == 1 &&
				there.count("ERROR", `another process is connected as \"n2\"`) == 1
		})
		second.Send("n1", number(7))
		first.Send("n1", number(1))
		await(t, "a message of the first process", func() bool { return y.from("n2") == 2 })
		first.Close()
		await(t, "the second process to be connected", func() bool { return connected(second, a) })
		second.Send("n1", number(2))
		await(t, "the message", func() bool { return y.from("n2") == 3 })
	})
}

// raw is a client that sends an arbitrary hello.
func raw(t *testing.T, a *Transport, files *TLS, md metadata.MD) (gogrpc.ClientStream, error) {
	t.Helper()
	connection, err := Dial(a.Addr().String(), files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	ctx := t.Context()
	if md != nil {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	return connection.NewStream(ctx, &service.Streams[0], methodCarry, gogrpc.CallContentSubtype(codecName))
}

// refusal returns the status that a stream ends with.
func refusal(t *testing.T, s gogrpc.ClientStream, err error) error {
	t.Helper()
	if err == nil {
		err = s.RecvMsg(new([]byte))
	}
	if err == nil {
		t.Fatal("got a response to an invalid hello")
	}
	return err
}

// TestWrongMetadata: a hello that is missing, damaged, doubled or wrong is refused.
func TestWrongMetadata(t *testing.T) {
	t.Parallel() // it waits for connections
	p := newPKI(t)
	a := start(t, p.config(t, "n1"))
	files := p.issue("n2", node("n2"), time.Hour)
	good := func() *hello {
		return &hello{protocol: protocol, topology: "bank", version: "1", trustDomain: "example.org", node: "n2", to: "n1", incarnation: 1, messageBytesMax: 1 << 20}
	}
	lie := func(change func(h *hello)) metadata.MD {
		h := good()
		change(h)
		return h.metadata()
	}
	for want, md := range map[string]metadata.MD{
		"1 value of topogen-hello-bin, got 0":          nil,
		"1 value of topogen-hello-bin, got 2":          metadata.Join(good().metadata(), good().metadata()),
		"damaged hello":                                metadata.Pairs(helloKey, "\xff\xff"),
		"hello must have at most 4096 bytes, got 5000": metadata.Pairs(helloKey, strings.Repeat("a", 5000)),
		"not valid UTF-8":                              lie(func(h *hello) { h.topology = "\xff" }),
		"version 2 of the":                             lie(func(h *hello) { h.protocol = 2 }),
		"its topology is":                              lie(func(h *hello) { h.topology = "shop" }),
		"its trust domain is":                          lie(func(h *hello) { h.trustDomain = "example.com" }),
		"its messages have version":                    lie(func(h *hello) { h.version = "" }),
		"must not use the name":                        lie(func(h *hello) { h.node = "n3" }),
		"it has dialled node":                          lie(func(h *hello) { h.to = "" }),
		"at most 259 bytes":                            lie(func(h *hello) { h.address = strings.Repeat("a", 300) + ":1" }),
		"must be host:port":                            lie(func(h *hello) { h.address = "n2" }),
		"port must be 1 to 65535":                      lie(func(h *hello) { h.address = "n2:http" }),
		"host must be a DNS name":                      lie(func(h *hello) { h.address = "n2/../x:1" }),
	} {
		s, err := raw(t, a, files, md)
		err = refusal(t, s, err)
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
	// Headers that are too large are refused before they are parsed.
	s, err := raw(t, a, files, metadata.Pairs(helloKey, strings.Repeat("a", 1<<20)))
	refusal(t, s, err)
	s, err = raw(t, a, files, good().metadata())
	if err != nil {
		t.Fatal(err)
	}
	if headers, err := s.Header(); err != nil || len(headers.Get(helloKey)) != 1 {
		t.Errorf("the valid hello: %v, %v", headers, err)
	}

	// Without TLS a node can meet itself, or an invalid name.
	a = start(t, (*pki)(nil).config(t, "n1"))
	for want, name := range map[string]string{"two processes use the same identity": "n1", "is not a name of a node": "n/1"} {
		s, err := raw(t, a, nil, lie(func(h *hello) { h.node, h.trustDomain = name, "" }))
		if err := refusal(t, s, err); !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
}

// echo is a service with one method, which returns who calls it.
func echo(r gogrpc.ServiceRegistrar) {
	r.RegisterService(&gogrpc.ServiceDesc{
		ServiceName: "test.Echo",
		HandlerType: (*any)(nil),
		Methods: []gogrpc.MethodDesc{{MethodName: "Who", Handler: func(server any, ctx context.Context, decode func(any) error, intercept gogrpc.UnaryServerInterceptor) (any, error) {
			var request emptypb.Empty
			if err := decode(&request); err != nil {
				return nil, err
			}
			return intercept(ctx, &request, &gogrpc.UnaryServerInfo{Server: server, FullMethod: "/test.Echo/Who"}, func(ctx context.Context, _ any) (any, error) {
				id, ok := Caller(ctx)
				return nil, status.Error(codes.OK+codes.DataLoss, fmt.Sprint("you are ", id, ok))
			})
		}}},
	}, nil)
}

// TestClients: the service for clients accepts clients and operators, other services do not
// accept clients, and the connection of a client makes room for those of nodes.
func TestClients(t *testing.T) {
	p := newPKI(t)
	c := p.config(t, "n1")
	c.Register, c.ClientService = echo, "test.Echo"
	a := start(t, c)
	files := p.issue("web", certs.ID{TrustDomain: "example.org", Topology: "bank", Client: "web"}, time.Hour)
	connection, err := Dial(a.Addr().String(), files)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ask := func(method string) error {
		return connection.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
	}
	if err := ask("/test.Echo/Who"); err == nil || !strings.Contains(err.Error(), "you are spiffe://example.org/bank/client/web true") {
		t.Error(err)
	}
	a.connections.mu.Lock()
	for _, c := range a.connections.open {
		if c.idle == nil || c.role != roleClient {
			t.Error("the connection of a client is kept before those of nodes")
		}
	}
	if len(a.connections.open) != 1 {
		t.Errorf("%d connections are open", len(a.connections.open))
	}
	a.connections.mu.Unlock()

	c = p.config(t, "n2")
	c.Register, c.ClientService = echo, "test.Other"
	b := start(t, c)
	other, err := Dial(b.Addr().String(), files)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = other.Invoke(t.Context(), "/test.Echo/Who", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "client/web is not an operator") {
		t.Error(err)
	}
}

// TestOperators: the services for operators accept only operators of this topology, and
// an operator's certificate is not accepted as a node's.
func TestOperators(t *testing.T) {
	p := newPKI(t)
	c := p.config(t, "n1")
	c.Register = echo
	a := start(t, c)
	who := func(files *TLS) error {
		connection, err := Dial(a.Addr().String(), files)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		return connection.Invoke(t.Context(), "/test.Echo/Who", &emptypb.Empty{}, &emptypb.Empty{})
	}
	ann := p.issue("ann", certs.ID{TrustDomain: "example.org", Topology: "bank", Operator: "ann"}, time.Hour)
	for want, files := range map[string]*TLS{
		"you are spiffe://example.org/bank/operator/ann true":          ann,
		"spiffe://example.org/bank/n2 is not an operator of topology":  p.issue("n2", node("n2"), time.Hour),
		"spiffe://example.org/bank/client/web is not an operator of":   p.issue("web", certs.ID{TrustDomain: "example.org", Topology: "bank", Client: "web"}, time.Hour),
		"reached spiffe://example.org/bank/n1, which is not a node of": p.issue("eve", certs.ID{TrustDomain: "example.org", Topology: "shop", Operator: "eve"}, time.Hour),
		"error reading server preface":                                 nil,
	} {
		if err := who(files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
	s, err := raw(t, a, ann, (&hello{protocol: protocol, topology: "bank", version: "1", trustDomain: "example.org", node: "ann", to: "n1"}).metadata())
	if err := refusal(t, s, err); !strings.Contains(err.Error(), "spiffe://example.org/bank/operator/ann is not a node") {
		t.Error(err)
	}

	// Without TLS, on this host, there is no identity.
	c = (*pki)(nil).config(t, "n1")
	c.Register = echo
	a = start(t, c)
	if err := who(nil); err == nil || !strings.Contains(err.Error(), "false") {
		t.Error(err)
	}
}

// TestLongChains: both ends refuse a chain of more than five certificates.
func TestLongChains(t *testing.T) {
	p := newPKI(t)
	var log logged
	c := p.config(t, "n1")
	c.Logger = log.logger()
	a := start(t, c)
	long := func(files *TLS) *TLS {
		b, err := os.ReadFile(files.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files.Cert, append(b, bytes.Repeat(p.ca.Cert, 5)...), 0o600); err != nil {
			t.Fatal(err)
		}
		return files
	}
	files := long(p.issue("n2", node("n2"), time.Hour))
	if _, err := loadCertificates(*files, node("n2"), c.Logger); err == nil || !strings.Contains(err.Error(), "at most 5 certificates, got 6") {
		t.Errorf("the files of a node: %v", err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // with TLS 1.3 a refused client notices it when it reads
	}
	if err == nil {
		t.Error("the listener has accepted the chain")
	}
	await(t, "the listener to log the reason", func() bool { return log.count("ERROR", "refused a connection", "at most 5 certificates, got 6") == 1 })

	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	a.SetPeer("n2", l.Addr().String())
	await(t, "the dialler to refuse the listener", func() bool { return log.count("ERROR", "peer=n2", "at most 5 certificates, got 6") == 1 })
}
