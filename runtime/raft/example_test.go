package raft_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// The state of the examples is the balance of each account.
type balances struct{ Cents map[string]int64 }

// deposit is the update of the examples. Its result is the new balance.
type deposit struct {
	Account string
	Cents   int64
}

func (d *deposit) Update(b *balances) (int64, error) {
	if d.Cents <= 0 {
		return 0, errors.New("a deposit must be above 0")
	}
	if b.Cents == nil {
		b.Cents = map[string]int64{}
	}
	b.Cents[d.Account] += d.Cents
	return b.Cents[d.Account], nil
}

// jsonCodec encodes values as JSON. Generated code has faster codecs.
func jsonCodec[T any]() fsm.Codec[T] {
	return fsm.Codec[T]{
		Append: func(b []byte, v *T) ([]byte, error) {
			text, err := json.Marshal(v)
			return append(b, text...), err
		},
		Consume: func(b []byte, v *T) error { return json.Unmarshal(b, v) },
	}
}

var balancesDefinition = fsm.Definition[balances, deposit, int64]{
	Update:      (*deposit).Update,
	StateCodec:  jsonCodec[balances](),
	UpdateCodec: jsonCodec[deposit](),
	ResultCodec: jsonCodec[int64](),
}

// A state machine on one disk keeps its state when it is closed and opened again.
func Example() {
	dir, err := os.MkdirTemp("", "raft")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	config := raft.Config{Topology: "bank", Group: "ledger", Dir: dir, Logger: slog.New(slog.DiscardHandler)}

	for range 2 {
		m, err := raft.New(config, balancesDefinition)
		if err != nil {
			log.Fatal(err)
		}
		if err := m.Start(ctx, nil); err != nil {
			log.Fatal(err)
		}
		balance, err := m.Propose(ctx, deposit{"ann", 100})
		fmt.Println("balance", balance, err)
		if err := m.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// balance 100 <nil>
	// balance 200 <nil>
}

// Three nodes replicate a state machine. Each node usually runs in its own process and
// uses gRPC. Here all nodes run in one process and use a transport in memory. An update is
// proposed at one node and read at another one.
func ExampleMachine() {
	dir, err := os.MkdirTemp("", "raft")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	network := transport.NewMemory(transport.MemoryOptions{})

	nodes := map[string]*raft.Machine[balances, deposit, int64]{}
	for _, name := range []string{"n1", "n2", "n3"} {
		link, err := network.Join(name)
		if err != nil {
			log.Fatal(err)
		}
		defer link.Close()
		m, err := raft.New(raft.Config{
			Topology: "bank", Group: "ledger",
			Node:      name,
			Peers:     map[string]string{"n1": "host1:7101", "n2": "host2:7101", "n3": "host3:7101"},
			Dir:       dir,  // each node has a folder below it
			Forward:   true, // so that followers accept proposals, too
			Transport: link,

			// Nodes in one process need no long timeouts.
			Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond,
			Logger: slog.New(slog.DiscardHandler),
		}, balancesDefinition)
		if err != nil {
			log.Fatal(err)
		}
		if err := m.Start(ctx, nil); err != nil {
			log.Fatal(err)
		}
		defer m.Close()
		nodes[name] = m
	}

	balance, err := nodes["n1"].Propose(ctx, deposit{"ann", 100})
	fmt.Println("balance", balance, err)
	_, err = nodes["n2"].Propose(ctx, deposit{"ann", -5})
	fmt.Println("error:", err)
	err = nodes["n3"].Read(ctx, func(b *balances) { balance = b.Cents["ann"] })
	fmt.Println("read", balance, err)
	// Output:
	// balance 100 <nil>
	// error: a deposit must be above 0
	// read 100 <nil>
}

// After an error that leaves the outcome unknown, a Request can be repeated. The session
// makes sure that the update is applied once.
func ExampleSession() {
	dir, err := os.MkdirTemp("", "raft")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	m, err := raft.New(raft.Config{Topology: "bank", Group: "ledger", Dir: dir, Logger: slog.New(slog.DiscardHandler)}, balancesDefinition)
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Start(ctx, nil); err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	session, err := m.OpenSession(ctx, "teller 7")
	if err != nil {
		log.Fatal(err)
	}
	request, err := session.Request(ctx, deposit{"ann", 100})
	if err != nil {
		log.Fatal(err)
	}
	defer request.Drop()
	for {
		result, err := request.Do(ctx)
		if fsm.OutcomeKnown(err) {
			fmt.Println("balance", result.Value, err)
			break
		}
	}
	// Output: balance 100 <nil>
}
