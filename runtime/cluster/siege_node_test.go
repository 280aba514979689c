package cluster

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/siege"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// echoGroup has the messages that the besieged node returns to other nodes.
var echoGroup = transport.GroupID("program", "siege")

// besiegedInstances makes the address table of the besieged node so large that copies of it count.
const besiegedInstances = 1 << 14

// runBesieged runs a node in a child process. It has TLS, the services for operators and clients, and
// no work of its own.
func runBesieged() error {
	p := newProgram()
	p.gated = true
	p.processors[2].instances = besiegedInstances
	t, err := p.newTop(func(s piper.NodeSettings) (*Node, error) {
		return Open(p.config(1, os.Getenv(VariableDir), table.NewMemory()), s)
	})
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- t.pool.Run(context.Background()) }()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for o := t.node.opened.Load(); o == nil || o.lookup == nil; o = t.node.opened.Load() {
		select {
		case err := <-failed:
			return err
		case <-poll.C:
		}
	}
	wire := t.node.transport
	wire.Handle(echoGroup, func(from string, payloads [][]byte) {
		if address, ok := wire.PeerAddress(from); ok {
			wire.SetPeer(from, address)
		}
		for _, b := range payloads {
			if len(b) == 8 {
				wire.Send(from, transport.Message{Group: echoGroup, Payload: b})
			}
		}
	})
	siege.Ready(os.Getenv(variableSiegeAddress))
	return nil
}

const variableSiegeAddress = "TOPOGEN_TEST_ADDRESS"

// besieged is a node in a child process, with the certificates of everyone who connects to it.
type besieged struct {
	*siege.Process
	pki     *pki
	address string
}

func startBesieged(t *testing.T) *besieged {
	t.Helper()
	b := &besieged{pki: newPKI(t, "program"), address: loopback.Addresses(t, 1)[0]}
	files := b.files("", "", "n1")
	b.Process = siege.Start(t, "besieged", variableSiegeAddress+"="+b.address,
		VariableNode+"=n1", VariableNodes+"=n1="+b.address, VariableDir+"="+t.TempDir(),
		VariableCert+"="+files.Cert, VariableKey+"="+files.Key, VariableCA+"="+files.CA)
	return b
}

// files returns the certificate of a client, an operator or a node.
func (b *besieged) files(client, operator, node string) *grpc.TLS {
	return b.pki.issue(certs.ID{TrustDomain: "program", Topology: "program", Client: client, Operator: operator, Node: node})
}

// pair returns the same as files, for crypto/tls.
func (b *besieged) pair(t *testing.T, client, operator, node string) tls.Certificate {
	t.Helper()
	files := b.files(client, operator, node)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// victims returns a node, a client and an operator, which have certificates of their own, and a client
// and an operator that connect for each call.
func (b *besieged) victims(t *testing.T) []siege.Victim {
	t.Helper()
	client := b.files("web", "", "")
	operator := b.files("", "ann", "")
	connection, err := grpc.Dial(b.address, client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	const deadline = 5 * time.Second // on a computer that runs other tests
	return []siege.Victim{
		{Name: "a node", Deadline: deadline, Call: b.echo(t)},
		{Name: "a client", Rate: 20, Deadline: deadline, Call: func(ctx context.Context) error { return askPlaces(ctx, connection) }},
		{Name: "clients that connect", Rate: 10, Deadline: deadline, Call: func(ctx context.Context) error {
			connection, err := grpc.Dial(b.address, client)
			if err != nil {
				return err
			}
			defer func() { _ = connection.Close() }()
			return askPlaces(ctx, connection)
		}},
		{Name: "operators", Rate: 10, Deadline: deadline, Call: func(ctx context.Context) error {
			r, err := Operate(ctx, b.address, operator, Command{Show: ShowStatus})
			if err == nil && len(r.Processors) == 0 {
				err = errors.New("the answer has no processors")
			}
			return err
		}},
	}
}

// askPlaces asks for the address table.
func askPlaces(ctx context.Context, connection *gogrpc.ClientConn) error {
	answer := new(wrapperspb.BytesValue)
	if err := connection.Invoke(ctx, placesMethod, wrapperspb.String("plan\n"), answer); err != nil {
		return err
	}
	if len(answer.GetValue()) == 0 {
		return errors.New("the address table is empty")
	}
	return nil
}

// echo connects a node, and returns a function that sends a message to the besieged node and waits
// until it comes back.
func (b *besieged) echo(t *testing.T) func(context.Context) error {
	t.Helper()
	n, err := grpc.Listen(grpc.Config{
		Node: "n2", Topology: "program", Version: wireVersion, TrustDomain: "program", Address: "127.0.0.1:0",
		TLS: b.files("", "", "n2"), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	var mu sync.Mutex
	var last uint64
	waiting := map[uint64]chan struct{}{}
	n.Handle(echoGroup, func(_ string, payloads [][]byte) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range payloads {
			number := binary.BigEndian.Uint64(p)
			if c := waiting[number]; c != nil {
				close(c)
				delete(waiting, number)
			}
		}
	})
	n.SetPeer("n1", b.address)
	call := func(ctx context.Context) error {
		mu.Lock()
		last++
		number, back := last, make(chan struct{})
		waiting[number] = back
		mu.Unlock()
		n.Send("n1", transport.Message{Group: echoGroup, Payload: binary.BigEndian.AppendUint64(nil, number)})
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for { // until both directions are connected
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := call(ctx)
		cancel()
		if err == nil {
			return call
		}
		if t.Context().Err() != nil {
			t.Fatal("the node is not connected")
		}
	}
}
