package addresses

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/cluster/table/etcd"
)

// unary is called around each request.
type unary func(ctx context.Context, method string, request any, handle func() (any, error)) (any, error)

// faulty makes faults in an etcd.
type faulty struct {
	unary  atomic.Pointer[unary]
	stream atomic.Pointer[gate] // of the streams that begin now; nil: no faults
}

// startFaulty starts an etcd with faults.
func startFaulty(t *testing.T) (*server, *faulty) {
	t.Helper()
	f := &faulty{}
	s := startServer(t, grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		call := func() (any, error) { return handle(ctx, r) }
		if around := f.unary.Load(); around != nil {
			return (*around)(ctx, info.FullMethod, r, call)
		}
		return call()
	}), grpc.ChainStreamInterceptor(func(server any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		g := f.stream.Load()
		if g == nil {
			return handle(server, s)
		}
		ended := make(chan error, 1)
		go func() { ended <- handle(server, &gatedStream{s, g}) }()
		select {
		case err := <-ended:
			return err
		case <-g.open:
			return status.Error(codes.Unavailable, "the stream was held")
		}
	}))
	return s, f
}

// gate holds the messages of streams, and ends the streams when it is opened.
type gate struct {
	held atomic.Bool
	open chan struct{}
}

type gatedStream struct {
	grpc.ServerStream
	gate *gate
}

func (s *gatedStream) SendMsg(m any) error {
	if !s.gate.held.Load() {
		return s.ServerStream.SendMsg(m)
	}
	select {
	case <-s.gate.open:
	case <-s.Context().Done():
	}
	return errors.New("the stream was held")
}

func epochOf(o table.Table, instance int) uint64 {
	counter, _, _ := o.Replica().Processor("counter")
	_, epoch := o.Replica().Lookup(counter, instance)
	return epoch
}

// TestLostAnswer loses the answer to a transaction without guards. The node sees the entry
// in its watch before it repeats the request, and must not append it again.
func TestLostAnswer(t *testing.T) {
	s, f := startFaulty(t)
	c := &cluster{server: s, prefix: "/test"}
	ctx, o := started(t, c)
	lost := 0
	around := unary(func(ctx context.Context, method string, _ any, handle func() (any, error)) (any, error) {
		response, err := handle()
		if strings.HasSuffix(method, "/Txn") && lost < 1 {
			lost++
			if err := o.Replica().Wait(ctx, table.Revision{Index: 2}); err != nil {
				t.Error(err)
			}
			return nil, status.Error(codes.Unavailable, "the answer is lost")
		}
		return response, err
	})
	f.unary.Store(&around)
	if _, err := o.Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n2"}}); err != nil {
		t.Fatal(err)
	}
	if err := o.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if got := epochOf(o, 0); got != 2 || lost != 1 {
		t.Errorf("counter/0 has epoch %d after one transaction, want 2", got)
	}
}

// TestSnapshotsOfTwoNodes lets two nodes write a snapshot at the same entry. One of them
// comes too late. The snapshot must be complete.
func TestSnapshotsOfTwoNodes(t *testing.T) {
	s, f := startFaulty(t)
	c := &cluster{server: s, prefix: "/test", change: func(c *etcd.Config) { c.SnapshotEvery = 3 }}
	ctx, a := started(t, c) // entry 1
	c.change = func(c *etcd.Config) { c.SnapshotEvery = 2 }
	b := c.open(t)
	defer b.Close()
	sameTables(ctx, t, a, b)
	var mu sync.Mutex
	heads, compared := 0, 0
	both, release := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	around := unary(func(_ context.Context, method string, request any, handle func() (any, error)) (any, error) {
		if r, ok := request.(*etcdserverpb.RangeRequest); ok && string(r.Key) == "/test/head" {
			response, err := handle()
			mu.Lock()
			if heads++; heads == 2 {
				close(both)
			}
			mu.Unlock()
			<-release
			return response, err
		}
		response, err := handle()
		if r, ok := request.(*etcdserverpb.TxnRequest); ok && strings.HasSuffix(method, "/Txn") && string(r.Compare[0].Key) == "/test/head" {
			mu.Lock()
			if compared++; compared == 2 {
				close(done)
			}
			mu.Unlock()
		}
		return response, err
	})
	f.unary.Store(&around)
	move(ctx, t, b, 1) // entry 2: b begins a snapshot
	if err := a.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	move(ctx, t, a, 1) // entry 3: a begins one, too
	if err := b.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []chan struct{}{both, done} {
		select {
		case <-wait:
		case <-ctx.Done():
			t.Fatal("the nodes have not written two snapshots")
		}
		if wait == both {
			close(release)
		}
	}
	f.unary.Store(nil)
	late := c.open(t)
	defer late.Close()
	sameTables(ctx, t, a, late)
}

// TestOutcomeInSnapshot holds the watch of a node after its transaction. The node then gets
// the entry in a snapshot, which does not contain the outcome.
func TestOutcomeInSnapshot(t *testing.T) {
	s, f := startFaulty(t)
	c := &cluster{server: s, prefix: "/test", change: func(c *etcd.Config) { c.SnapshotEvery = 10 }}
	g := &gate{open: make(chan struct{})}
	f.stream.Store(g)
	ctx, a := started(t, c)
	f.stream.Store(nil)
	b := c.open(t)
	defer b.Close()
	sameTables(ctx, t, a, b)
	g.held.Store(true)
	result := make(chan error, 1)
	go func() {
		_, err := a.Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n2"}})
		result <- err
	}()
	if err := b.Replica().Wait(ctx, table.Revision{Index: 2}); err != nil {
		t.Fatal(err)
	}
	move(ctx, t, b, 20)
	client := c.client(t)
	for {
		r, err := client.Get(ctx, "/test/log/0000000000000002")
		if err != nil {
			t.Fatal(err)
		}
		if r.Count == 0 { // the snapshot is written
			if _, err := client.Compact(ctx, r.Header.Revision); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	close(g.open)
	select {
	case err := <-result:
		if !errors.Is(err, table.ErrUnknown) {
			t.Errorf("the transaction got %v, want ErrUnknown", err)
		}
	case <-ctx.Done():
		t.Fatal("the transaction waits for its outcome for ever")
	}
	sameTables(ctx, t, a, b)
}
