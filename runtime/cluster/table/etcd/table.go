package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// Table is the address table of a node, see [table.Table].
type Table struct {
	config Config
	keys   keys
	client *clientv3.Client

	connection *connection
	replica    *table.Replica

	stop    context.CancelFunc
	ctx     context.Context // of the goroutines
	running sync.WaitGroup
	end     sync.Once

	appending chan struct{} // holds a value while a goroutine appends entries; the others wait for it

	mu        sync.Mutex
	last      uint64             // number of the last entry that the replica has applied
	snapshots uint64             // that were loaded
	waiting   map[uint64]*waiter // by nonce: proposals of this node
	size      int                // bytes of the entries since the last snapshot
	snapshot  bool               // a snapshot is being written
}

// waiter waits for the entry of a proposal to be applied.
type waiter struct {
	answer chan applied // has room for one
	number uint64       // of the entry; 0: not known
}

// applied is an outcome with its revision.
type applied struct {
	revision table.Revision
	outcome  table.Outcome
	lost     bool // the entry was in a snapshot, which has no outcomes
}

var _ table.Table = (*Table)(nil)

// Open opens the table on a node. It does not wait for etcd: the first transaction, or
// Sync, does.
func Open(c Config) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	connection := new(connection)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints, TLS: c.TLS, Username: c.Username, Password: c.Password,
		DialTimeout: dialTimeout, DialKeepAliveTime: requestTimeout, DialKeepAliveTimeout: requestTimeout,
		Logger: zap.NewNop(), // errors are returned, or logged by this package
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(connection.note),
			grpc.WithConnectParams(grpc.ConnectParams{ // by default, gRPC pauses for up to two minutes, and the node is fenced in this time
				Backoff: backoff.Config{BaseDelay: retryMin, Multiplier: 2, Jitter: 0.5, MaxDelay: retryMax}, MinConnectTimeout: dialTimeout,
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("table/etcd: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t := &Table{
		config: c, keys: keys{c.Prefix}, client: client, connection: connection, replica: table.NewReplica(), stop: stop, ctx: ctx,
		appending: make(chan struct{}, 1), waiting: map[uint64]*waiter{},
	}
	t.running.Go(t.follow)
	return t, nil
}

// Replica returns the table's copy on this node.
func (t *Table) Replica() *table.Replica { return t.replica }

// Sync waits until the replica has all acknowledged transactions. It reads the number of
// the last entry from a majority of etcd.
func (t *Table) Sync(ctx context.Context) error {
	for retry := newPauses(); ; {
		if err := t.Err(); err != nil {
			return err
		}
		before := t.applied()
		response, err := t.get(ctx, t.keys.last())
		if err == nil {
			last, err := lastOf(response.Kvs)
			if err == nil {
				err = checkLast(before, last)
			}
			if err != nil {
				return t.final(err)
			}
			return t.replica.Wait(ctx, table.Revision{Index: last})
		}
		if err := t.pause(ctx, retry.next(), err); err != nil {
			return err
		}
	}
}

// get reads a key with a timeout.
func (t *Table) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return t.client.Get(ctx, key, options...)
}

// pause waits before a request is repeated that failed with an error. It returns the
// error if repeating does not help, and the reason if the table or ctx ends. The goroutines
// of the table must not call it, because the table waits for their end before it has a reason.
func (t *Table) pause(ctx context.Context, d time.Duration, err error) error {
	err = t.connection.explain(err)
	if permanent(err) {
		return t.final(err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.ctx.Done():
		<-t.Done()
		return t.Err()
	case <-ctx.Done():
		return fmt.Errorf("table/etcd: %w; the last request failed: %w", ctx.Err(), err)
	}
}

// final returns an error as users get it. Only a permanent error changes.
func (t *Table) final(err error) error {
	switch {
	case errors.Is(err, errKey) || errors.Is(err, table.ErrDamaged):
		return fmt.Errorf("table/etcd: %w. Stop all nodes of the cluster, and start them again; if that does not help, remove all keys below %s before", err, t.config.Prefix)
	case permanent(err):
		return fmt.Errorf("table/etcd: %w", err)
	}
	return err
}

// permanent reports whether a request fails again when it is repeated.
func permanent(err error) bool {
	if errors.Is(err, errKey) || errors.Is(err, table.ErrDamaged) {
		return true
	}
	if errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) {
		return false // the client gets another token
	}
	code := status.Code(err)
	var known rpctypes.EtcdError // which package status does not know
	if errors.As(err, &known) {
		code = known.Code()
	}
	return code == codes.PermissionDenied || code == codes.Unauthenticated || code == codes.InvalidArgument
}

// pauses is a growing time between repeated requests, with a random part so that nodes do
// not repeat at the same time.
type pauses struct{ time.Duration }

func newPauses() pauses { return pauses{retryMin} }

func (b *pauses) next() time.Duration {
	d := b.Duration
	b.Duration = min(2*b.Duration, retryMax)
	return d/2 + rand.N(d)
}

// Done returns a channel that is closed when the table has ended.
func (t *Table) Done() <-chan struct{} { return t.replica.Done() }

// Err returns why the table has ended.
func (t *Table) Err() error { return t.replica.Err() }

// Close ends the table on this node.
func (t *Table) Close() error {
	t.finish(table.ErrClosed)
	if err := t.Err(); !errors.Is(err, table.ErrClosed) {
		return err
	}
	return nil
}

// finish ends the table with an error. It returns when all goroutines have ended.
func (t *Table) finish(err error) {
	t.end.Do(func() {
		t.stop()
		t.running.Wait()
		if closed := t.client.Close(); closed != nil && !errors.Is(closed, context.Canceled) {
			t.config.Logger.Warn("table: closing the connection to etcd", slog.Any("error", closed))
		}
		t.replica.Fail(err)
	})
}
