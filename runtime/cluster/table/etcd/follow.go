package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// follow applies the log to the replica: it reads the newest snapshot and the entries
// after it, and then watches the log. If etcd has compacted the revision from which the
// watch must continue, it begins again with the newest snapshot.
func (t *Table) follow() {
	retry := newPauses()
	var warned time.Time
	for t.ctx.Err() == nil {
		revision, err := t.load()
		if err == nil {
			retry = newPauses()
			err = t.watch(revision + 1)
		}
		if t.ctx.Err() != nil {
			return
		}
		if permanent(err) {
			go t.finish(t.final(err)) // finish waits for this goroutine
			return
		}
		if now := time.Now(); !errors.Is(err, rpctypes.ErrCompacted) && now.Sub(warned) > time.Minute {
			warned = now
			t.config.Logger.Warn("table: etcd cannot be read; this is tried again", slog.Any("endpoints", t.config.Endpoints), slog.Any("error", t.connection.explain(err)))
		}
		select {
		case <-time.After(retry.next()):
		case <-t.ctx.Done():
			return
		}
	}
}

// load brings the replica to the state of the keys at one revision of etcd, and returns
// this revision.
func (t *Table) load() (revision int64, err error) {
	response, err := t.get(t.ctx, t.keys.head())
	if err != nil {
		return 0, err
	}
	revision = response.Header.Revision
	if len(response.Kvs) > 0 {
		h, err := readHead(response.Kvs[0].Value)
		if err != nil {
			return 0, err
		}
		if h.last > t.applied() {
			if err := t.loadSnapshot(h, revision); err != nil {
				return 0, err
			}
		}
	}
	for {
		first := t.applied() + 1
		page, err := t.get(t.ctx, t.keys.entry(first), clientv3.WithRange(clientv3.GetPrefixRangeEnd(t.keys.log())),
			clientv3.WithRev(revision), clientv3.WithLimit(entriesPerPage))
		if err != nil {
			return 0, err
		}
		for _, kv := range page.Kvs {
			err := t.take(kv)
			if errors.Is(err, errGap) { // all keys were read at one revision, so reading them again does not help
				err = fmt.Errorf("%w: %w", errKey, err)
			}
			if err != nil {
				return 0, err
			}
		}
		if !page.More {
			return revision, t.checkComplete(revision)
		}
	}
}

// checkComplete returns an error if the keys at one revision of etcd name entries that are
// not there. A node would wait for these entries forever.
func (t *Table) checkComplete(revision int64) error {
	response, err := t.get(t.ctx, t.keys.last(), clientv3.WithRev(revision))
	if err != nil {
		return err
	}
	last, err := lastOf(response.Kvs)
	if applied := t.applied(); err == nil && last > applied {
		err = fmt.Errorf("%w: %q must be the number of the last entry, %d, got %d", errKey, t.keys.last(), applied, last)
	}
	return err
}

// loadSnapshot replaces the state of the replica with a snapshot.
func (t *Table) loadSnapshot(h head, revision int64) error {
	var b []byte
	for i := range h.parts {
		part, err := t.get(t.ctx, t.keys.part(h.last, i), clientv3.WithRev(revision))
		if err != nil {
			return err
		}
		if len(part.Kvs) != 1 || len(b)+len(part.Kvs[0].Value) > table.SnapshotBytes {
			return fmt.Errorf("%w: part %d of the snapshot at entry %d is missing or too large", errKey, i, h.last)
		}
		b = append(b, part.Kvs[0].Value...)
	}
	s, err := table.ReadState(b)
	if err != nil {
		return err
	}
	if s.Revision().Index != h.last {
		return fmt.Errorf("%w: the snapshot at entry %d has the revision %v", errKey, h.last, s.Revision())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replica.Adopt(s)
	t.last, t.size = h.last, 0
	t.snapshots++
	t.loseOutcomes()
	return nil
}

// watch applies new entries until the watch ends.
func (t *Table) watch(revision int64) error {
	ctx := clientv3.WithRequireLeader(t.ctx) // a member of etcd without a leader ends the watch
	for response := range t.client.Watch(ctx, t.keys.log(), clientv3.WithPrefix(), clientv3.WithFilterDelete(), clientv3.WithRev(revision)) {
		if err := response.Err(); err != nil {
			return err
		}
		for _, e := range response.Events {
			if err := t.take(e.Kv); err != nil {
				return err
			}
		}
	}
	return errors.New("the watch has ended")
}

// errGap means that entries are missing, because they were deleted after a snapshot.
var errGap = errors.New("entries are missing")

// take applies an entry to the replica, and answers its proposer.
func (t *Table) take(kv *mvccpb.KeyValue) error {
	n, err := t.keys.entryNumber(string(kv.Key))
	if err != nil {
		return err
	}
	e, err := readEntry(kv.Value)
	if err != nil {
		return fmt.Errorf("%w in %q", err, kv.Key)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case n <= t.last:
		return nil
	case n > t.last+1:
		return fmt.Errorf("%w between %d and %d", errGap, t.last, n)
	}
	c, err := table.ReadCommand(e.command)
	if err != nil {
		c = &table.Command{} // a kind that is refused, on all nodes
	}
	a := applied{revision: table.Revision{Index: n}}
	a.outcome = t.replica.Apply(a.revision, e.time, c)
	t.last = n
	t.size += len(kv.Value)
	if w := t.waiting[e.nonce]; w != nil {
		delete(t.waiting, e.nonce)
		w.answer <- a // it has room
		t.snapshotIfDue()
	}
	return nil
}

// applied returns the number of the last entry that the replica has applied.
func (t *Table) applied() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
