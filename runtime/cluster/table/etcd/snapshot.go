package etcd

import (
	"context"
	"fmt"
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// snapshotIfDue starts to write a snapshot, if this node has appended the entry that makes
// it due. The lock must be held.
func (t *Table) snapshotIfDue() {
	if t.snapshot || t.last%t.config.SnapshotEvery != 0 && t.size < snapshotBytes {
		return
	}
	t.snapshot, t.size = true, 0
	t.running.Go(func() {
		if err := t.writeSnapshot(); err != nil && t.ctx.Err() == nil {
			t.config.Logger.Warn("table: a snapshot could not be written to etcd; the log grows until the next one", slog.Any("error", err))
		}
		t.mu.Lock()
		t.snapshot = false
		t.mu.Unlock()
	})
}

// writeSnapshot writes the state of the replica in parts, and then the head that names
// them. In the same request it deletes the entries that the snapshot contains. If another
// node has written a snapshot in the meantime, the parts remain: the other snapshot may be
// at the same entry, and then they are its parts, too. Parts that no head names are deleted
// with the next snapshot.
func (t *Table) writeSnapshot() error {
	previous, err := t.get(t.ctx, t.keys.head())
	if err != nil {
		return err
	}
	written := int64(0) // revision of the head
	if len(previous.Kvs) > 0 {
		written = previous.Kvs[0].ModRevision
	}
	b := t.replica.Append(nil)
	s, err := table.ReadState(b) // also checks that it can be read
	if err != nil {
		return err
	}
	h := head{last: s.Revision().Index, parts: (len(b)-1)/partBytes + 1}
	if h.parts > partsMax {
		return fmt.Errorf("%w: the snapshot has %d bytes", table.ErrLimit, len(b))
	}
	if len(previous.Kvs) > 0 {
		if old, err := readHead(previous.Kvs[0].Value); err != nil || old.last >= h.last {
			return err
		}
	}
	for i := range h.parts {
		part := b[i*partBytes : min((i+1)*partBytes, len(b))]
		if err := t.put(t.keys.part(h.last, i), string(part)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
	defer cancel()
	_, err = t.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(t.keys.head()), "=", written)).Then(
		clientv3.OpPut(t.keys.head(), h.encode()),
		clientv3.OpDelete(t.keys.log(), clientv3.WithRange(t.keys.entry(h.last+1))),
		clientv3.OpDelete(t.keys.snapshots(), clientv3.WithRange(t.keys.snapshot(h.last))),
	).Commit()
	return err
}

func (t *Table) put(key, value string) error {
	ctx, cancel := context.WithTimeout(t.ctx, requestTimeout)
	defer cancel()
	_, err := t.client.Put(ctx, key, value)
	return err
}
