package replicated_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// TestOverHTTP asks each of three servers, of which two forward.
func TestOverHTTP(t *testing.T) {
	t.Parallel() // it waits for an election
	network := transport.NewMemory(transport.MemoryOptions{})
	quiet, dir := slog.New(slog.DiscardHandler), t.TempDir()
	peers := map[string]string{"n1": "h1:7101", "n2": "h2:7101", "n3": "h3:7101"}
	const token = "secret of the group, long enough"
	var clients []*client.Client
	for _, name := range names {
		link, err := network.Join(name)
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		backend, local := &later{}, &later{}
		s, err := server.Listen(server.Config{Backend: backend, Local: local, Listen: "127.0.0.1:0", Tokens: []string{token}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		n, err := replicated.Open(replicated.Config{
			Raft:   raft.Config{Topology: "shop", Group: "promises", Node: name, Peers: peers, Dir: dir, Transport: link, Logger: quiet, ElectionTimeout: 300 * time.Millisecond, Heartbeat: 30 * time.Millisecond},
			Engine: engine.Config{Logger: quiet},
			URL:    s.URL(),
			Client: client.Options{Token: token},
			Wait:   20 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		backend.Backend, local.Backend = n, n.Local()
		c, err := client.New(s.URL(), client.Options{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			c.Close()
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
			if err := n.Close(ctx); err != nil {
				t.Log(err)
			}
		}()
	}
	for i, c := range clients {
		op := create("p" + names[i])
		op.Tags = map[string]string{protocol.TagTarget: "poll://any@" + names[i]}
		messages, err := c.Connect(names[i], "worker")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.Do(t.Context(), op); err != nil || r.Status != protocol.OK {
			t.Fatalf("create at %s: %+v %v", names[i], r, err)
		}
		if m := <-messages.Messages(); m.Execute == nil || m.Execute.ID != op.ID {
			t.Errorf("the worker at %s received %+v", names[i], m)
		}
		messages.Close()
		for j, other := range clients {
			if r, err := other.Do(t.Context(), protocol.PromiseGet{ID: op.ID}); err != nil || r.Status != protocol.OK {
				t.Errorf("get at %s: %+v %v", names[j], r, err)
			}
		}
	}
}

// later is the backend of a server whose address is needed to open the node.
type later struct{ protocol.Backend }
