package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	gogrpc "google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// sum is a state, and plus is its update.
type (
	sum  struct{ n uint64 }
	plus struct{ n uint64 }
)

func (p *plus) Update(s *sum) error { s.n += p.n; return nil }

// numberCodec is the codec of a numeric type.
func numberCodec[T any](of func(*T) *uint64) fsm.Codec[T] {
	return fsm.Codec[T]{
		Append: func(b []byte, v *T) ([]byte, error) { return protowire.AppendVarint(b, *of(v)), nil },
		Consume: func(b []byte, v *T) error {
			number, n := protowire.ConsumeVarint(b)
			*of(v) = number
			return protowire.ParseError(n)
		},
	}
}

type machine = raft.Machine[sum, plus, struct{}]

// startnodes DIR NODE…: starts nodes of group ledger of topology bank, which run until the
// script ends, and waits for a leader. The variable NODE is the address of the node,
// $LEADER is the name of the leader, and $FOLLOWER the name of a follower. A node uses
// TLS if certs/NODE.crt exists.
func startNodes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: startnodes DIR NODE…")
	}
	peers := map[string]string{}
	for i, address := range freeAddresses(ts, len(args)-1) {
		peers[args[i+1]] = address
	}
	group := "ledger"
	nodes := map[string]*machine{}
	for name, address := range peers {
		nodes[name] = node(ts, raft.Config{Group: group, Dir: ts.MkAbs(args[0]), Node: name, Peers: peers})
		ts.Setenv(name, address)
	}
	leader := ""
	for _, m := range nodes { // an update waits for a leader
		_, err := m.Propose(context.Background(), plus{1})
		ts.Check(err)
	}
	for name, m := range nodes {
		if m.Status().Role == "leader" {
			leader = name
		}
	}
	for name := range nodes {
		if name != leader {
			ts.Setenv("FOLLOWER", name)
			ts.Setenv("FOLLOWERS_ADDRESS", peers[name])
		}
	}
	ts.Setenv("LEADER", leader)
	ts.Setenv("LEADERS_ADDRESS", peers[leader])
}

// joins DIR NODE: starts a node that the script will add to the group of n1, and sets
// the variable NODE to its address.
func joins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: joins DIR NODE")
	}
	address := freeAddresses(ts, 1)[0]
	peers := map[string]string{"n1": ts.Getenv("n1"), args[1]: address}
	node(ts, raft.Config{Group: "ledger", Dir: ts.MkAbs(args[0]), Node: args[1], Peers: peers, Join: true})
	ts.Setenv(args[1], address)
}

// second DIR GROUP NODE: starts another state machine on a running node.
func second(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: second DIR GROUP NODE")
	}
	peers := map[string]string{args[2]: ts.Getenv(args[2])}
	m := node(ts, raft.Config{Group: args[1], Dir: ts.MkAbs(args[0]), Node: args[2], Peers: peers})
	_, err := m.Propose(context.Background(), plus{1})
	ts.Check(err)
}

// instancelog DIR: creates the log of instance 1 of two instances on one disk.
func instanceLog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: instancelog DIR")
	}
	m := node(ts, raft.Config{Group: "ledger", Dir: ts.MkAbs(args[0]), Instance: 1, Instances: 2})
	_, err := m.Propose(context.Background(), plus{1})
	ts.Check(err)
	ts.Check(m.Close())
}

func node(ts *testscript.TestScript, c raft.Config) *machine {
	c.Logger = slog.New(slog.DiscardHandler)
	if len(c.Peers) == 1 { // it founds the group after two election timeouts, and has no rival
		c.Heartbeat, c.ElectionTimeout = 10*time.Millisecond, 50*time.Millisecond
	}
	cert := filepath.Join(ts.MkAbs("certs"), c.Node)
	if found, _ := filepath.Glob(cert + ".crt"); len(found) > 0 {
		c.TLSCert, c.TLSKey, c.TLSCA = cert+".crt", cert+".key", filepath.Join(ts.MkAbs("certs"), "ca.crt")
		c.TrustDomain = "example.org"
	}
	m, err := newMachine(c)
	ts.Check(err)
	ts.Defer(func() { _ = m.Close() })
	ts.Check(m.Start(context.Background(), nil))
	return m
}

// newMachine creates a node of topology bank.
func newMachine(c raft.Config) (*machine, error) {
	c.Topology, c.Forward = "bank", true
	c.Heartbeat, c.ElectionTimeout = cmp.Or(c.Heartbeat, 50*time.Millisecond), cmp.Or(c.ElectionTimeout, 500*time.Millisecond)
	return raft.New(c, fsm.Definition[sum, plus, struct{}]{
		Update:      fsm.NoResult((*plus).Update),
		StateCodec:  numberCodec(func(s *sum) *uint64 { return &s.n }),
		UpdateCodec: numberCodec(func(p *plus) *uint64 { return &p.n }),
	})
}

// listening NAME ANSWER: sets the variable NAME to the address of a server that answers the
// first bytes of a connection with ANSWER and closes it. Without ANSWER the server sends
// nothing.
func listening(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: listening NAME [ANSWER]")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], l.Addr().String())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }() // keeps the connection reachable: the garbage collector would close it
			if len(args) == 2 {
				_, _ = conn.Read(make([]byte, 1)) // net/http logs an answer that comes before its request
				fmt.Fprintln(conn, args[1])
				_ = conn.Close()
			}
		}
	}()
}

// operators NAME ANSWER: sets the variable NAME to the address of a server that answers
// each command with ANSWER. The file NAME.commands has the commands.
func operators(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: operators NAME ANSWER")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	commands, err := os.Create(ts.MkAbs(args[0] + ".commands"))
	ts.Check(err)
	ts.Defer(func() { _ = commands.Close() })
	s := gogrpc.NewServer(gogrpc.UnknownServiceHandler(func(_ any, stream gogrpc.ServerStream) error {
		var command wrapperspb.StringValue
		if err := stream.RecvMsg(&command); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(commands, command.Value); err != nil {
			return err
		}
		return stream.SendMsg(wrapperspb.String(args[1]))
	}))
	ts.Defer(s.Stop)
	go func() { _ = s.Serve(l) }()
}

// freeAddresses returns n free loopback addresses.
func freeAddresses(ts *testscript.TestScript, n int) []string {
	list, err := loopback.Find(n)
	ts.Check(err)
	return list
}
