package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// Acquire acquires a lease. The lease is a key that belongs to a lease of etcd. Its token
// is the revision at which the key was created. etcd counts in seconds, so the ttl is
// rounded up, and etcd may use a longer one.
func (t *Table) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (*table.Lease, error) {
	c := &table.Command{Kind: table.CommandAcquire, Name: name, Holder: holder, TTL: ttl}
	if err := c.Check(); err != nil {
		return nil, err
	}
	for retry := newPauses(); ; {
		if err := t.Err(); err != nil {
			return nil, err
		}
		l, other, err := t.tryAcquire(ctx, c)
		switch {
		case l != nil:
			return l, nil
		case err == nil:
			if err = t.waitDeleted(ctx, t.keys.lease(name), other); err == nil {
				continue
			}
			err = fmt.Errorf("%w: another holder has the lease %q: %w", table.ErrHeld, name, err)
			if ctx.Err() != nil {
				return nil, err
			}
		}
		if err := t.pause(ctx, retry.next(), err); err != nil {
			return nil, err
		}
	}
}

// tryAcquire creates the key of a lease. If the key exists, other is the revision of etcd
// at which it existed. A key of the same holder is removed: its answer was lost.
func (t *Table) tryAcquire(ctx context.Context, c *table.Command) (l *table.Lease, other int64, err error) {
	key, began := t.keys.lease(c.Name), time.Now()
	short, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	granted, err := t.client.Grant(short, int64((c.TTL+time.Second-1)/time.Second))
	if err != nil {
		return nil, 0, err
	}
	response, err := t.client.Txn(short).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, c.Holder, clientv3.WithLease(granted.ID))).Commit()
	if err != nil || !response.Succeeded {
		t.revoke(granted.ID)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case !response.Succeeded:
		_, err := t.client.Txn(short).If(clientv3.Compare(clientv3.Value(key), "=", c.Holder)).Then(clientv3.OpDelete(key)).Commit()
		return nil, response.Header.Revision, err
	}
	l = table.NewLease(c.Name, uint64(response.Header.Revision), func(ctx context.Context) error {
		_, err := t.client.Revoke(ctx, granted.ID)
		return err
	})
	renew := func(ctx context.Context) (time.Time, error) {
		began := time.Now()
		_, err := t.client.KeepAliveOnce(ctx, granted.ID)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = fmt.Errorf("%w: %q: etcd has ended it", table.ErrLeaseLost, c.Name)
		}
		return began, err
	}
	go l.Keep(renew, began, c.TTL, t.Done())
	return l, 0, nil
}

// revoke ends a lease of etcd that has no key. If it fails, the lease expires.
func (t *Table) revoke(id clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
	defer cancel()
	_, _ = t.client.Revoke(ctx, id)
}

// waitDeleted waits until a key that existed at a revision is deleted.
func (t *Table) waitDeleted(ctx context.Context, key string, revision int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	stop := context.AfterFunc(t.ctx, cancel)
	defer stop()
	for response := range t.client.Watch(ctx, key, clientv3.WithFilterPut(), clientv3.WithRev(revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		if len(response.Events) > 0 {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("the watch has ended")
}
