package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// Txn applies a transaction. It appends an entry to the log, if this node has applied all
// earlier entries, and waits for the entry in its watch. Guards are
// checked when the entry is applied, on all nodes in the same way. Only the guards of
// leases are checked by etcd, in the same request.
func (t *Table) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	p, err := t.proposal(guards, changes)
	if err != nil {
		return table.Revision{}, err
	}
	select {
	case t.appending <- struct{}{}:
	case <-t.Done():
		return table.Revision{}, t.Err()
	case <-ctx.Done():
		return table.Revision{}, ctx.Err()
	}
	w := &waiter{answer: make(chan applied, 1)}
	t.setWaiter(p.entry.nonce, w)
	defer t.setWaiter(p.entry.nonce, nil)
	err = t.append(ctx, p)
	<-t.appending
	if err != nil {
		return table.Revision{}, err
	}
	select {
	case a := <-w.answer:
		if a.lost {
			return table.Revision{}, fmt.Errorf("%w: it is in the log, but this node has got a snapshot instead of the entry", table.ErrUnknown)
		}
		return a.revision, p.err(&a.outcome)
	case <-t.Done():
		return table.Revision{}, fmt.Errorf("%w: %w", table.ErrUnknown, t.Err())
	case <-ctx.Done():
		return table.Revision{}, fmt.Errorf("%w: %w", table.ErrUnknown, ctx.Err())
	}
}

func (t *Table) setWaiter(nonce uint64, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w == nil {
		delete(t.waiting, nonce)
	} else {
		t.waiting[nonce] = w
	}
}

// appended notes the number of the entry of a proposal. If the replica has got this entry
// in a snapshot in the meantime, the outcome is lost.
func (t *Table) appended(nonce, number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.waiting[nonce]; w != nil {
		w.number = number
		t.loseOutcomes()
	}
}

// loseOutcomes answers the proposals whose entries the replica has got in a snapshot. The
// lock must be held.
func (t *Table) loseOutcomes() {
	for nonce, w := range t.waiting {
		if w.number > 0 && w.number <= t.last {
			delete(t.waiting, nonce)
			w.answer <- applied{lost: true} // it has room
		}
	}
}

// proposal is a transaction that is proposed.
type proposal struct {
	command *table.Command
	indices []int // of the command's guards in the transaction
	leases  []leaseGuard
	entry   entry
}

// leaseGuard is a guard that etcd checks.
type leaseGuard struct {
	index int
	table.LeaseIs
}

// proposal separates the guards that etcd checks from the others.
func (t *Table) proposal(guards []table.Guard, changes []table.Change) (*proposal, error) {
	whole := &table.Command{Kind: table.CommandTxn, Guards: guards, Changes: changes}
	if err := whole.Check(); err != nil {
		return nil, err
	}
	p := &proposal{command: &table.Command{Kind: table.CommandTxn, Changes: changes}}
	for i, g := range guards {
		if l, ok := g.(table.LeaseIs); ok {
			p.leases = append(p.leases, leaseGuard{i, l})
			continue
		}
		p.command.Guards = append(p.command.Guards, g)
		p.indices = append(p.indices, i)
	}
	if len(p.leases) > leaseGuardsMax {
		return nil, fmt.Errorf("%w: a transaction has at most %d guards of leases, got %d", table.ErrLimit, leaseGuardsMax, len(p.leases))
	}
	var err error
	p.entry = entry{nonce: rand.Uint64(), time: time.Now().UnixNano()}
	p.entry.command, err = table.AppendCommand(nil, p.command)
	return p, err
}

// err returns the error of an outcome. The index of a guard is its index in the
// transaction.
func (p *proposal) err(o *table.Outcome) error {
	err := o.Err(p.command)
	var guard *table.GuardError
	if errors.As(err, &guard) {
		guard.Index = p.indices[guard.Index]
	}
	return err
}

// append appends the entry of a proposal to the log. It repeats a request until its result
// is known. The nonce tells whether an entry is the entry of the proposal.
func (t *Table) append(ctx context.Context, p *proposal) error {
	sent := false          // a request may have succeeded
	snapshots := uint64(0) // that had been loaded before this request
	for retry := newPauses(); ; {
		at := t.position(p.entry.nonce)
		switch {
		case !at.waiting:
			return nil // a request whose answer was lost has succeeded
		case !sent:
			snapshots = at.snapshots
		case at.snapshots != snapshots:
			return fmt.Errorf("%w: this node has got a snapshot, which may contain the entry", table.ErrUnknown)
		}
		response, err := t.request(ctx, p, at.last)
		switch {
		case err != nil:
			sent = sent || !permanent(err)
			err = t.pause(ctx, retry.next(), err)
		case response.Succeeded:
			t.appended(p.entry.nonce, at.last+1)
			return nil
		default:
			var stored uint64
			if stored, err = lastOf(response.Responses[0].GetResponseRange().GetKvs()); err == nil {
				err = checkLast(at.last, stored)
			}
			if err == nil && stored == at.last {
				err = p.leaseError(response.Responses[1:])
			}
			if err != nil {
				err = t.final(err)
				break
			}
			err = t.replica.Wait(ctx, table.Revision{Index: stored})
		}
		if err == nil {
			continue
		}
		if sent {
			return fmt.Errorf("%w: %w", table.ErrUnknown, err)
		}
		return err
	}
}

// position is what a node knows before it sends a request.
type position struct {
	last      uint64 // number of the last entry that the replica has applied
	snapshots uint64 // that were loaded so far
	waiting   bool   // the entry of the proposal was not applied yet
}

func (t *Table) position(nonce uint64) position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return position{t.last, t.snapshots, t.waiting[nonce] != nil}
}

// checkLast returns an error if the log in etcd has fewer entries than this node had
// applied before it asked. Then etcd was restored from a backup, or the keys were deleted.
func checkLast(applied, stored uint64) error {
	if stored < applied {
		return fmt.Errorf("%w: the last entry is %d, but this node has applied entry %d; etcd may have been restored to an older state", errKey, stored, applied)
	}
	return nil
}

// request appends the entry after the entry last, and overwrites no entry. If it is not the
// last one any more, or if a lease has another token, the responses are the keys that say so.
func (t *Table) request(ctx context.Context, p *proposal, last uint64) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(t.keys.last()), "=", digits(last)),
		clientv3.Compare(clientv3.CreateRevision(t.keys.entry(last+1)), "=", 0), // or the number of the last entry is wrong
	}
	if last == 0 {
		conditions[0] = clientv3.Compare(clientv3.CreateRevision(t.keys.last()), "=", 0)
	}
	otherwise := []clientv3.Op{clientv3.OpGet(t.keys.last())}
	for _, l := range p.leases {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(t.keys.lease(l.Name)), "=", int64(l.Token)))
		otherwise = append(otherwise, clientv3.OpGet(t.keys.lease(l.Name)))
	}
	return t.client.Txn(ctx).If(conditions...).Then(
		clientv3.OpPut(t.keys.last(), digits(last+1)),
		clientv3.OpPut(t.keys.entry(last+1), p.entry.encode()),
	).Else(otherwise...).Commit()
}

// lastOf returns the number of the last entry from the key last.
func lastOf(kvs []*mvccpb.KeyValue) (uint64, error) {
	if len(kvs) == 0 {
		return 0, nil
	}
	return readLast(kvs[0].Value)
}

// leaseError returns the error of the first guard of a lease that does not hold.
func (p *proposal) leaseError(responses []*etcdserverpb.ResponseOp) error {
	for i, l := range p.leases {
		token := uint64(0)
		if kvs := responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
			token = uint64(kvs[0].CreateRevision)
		}
		if token != l.Token {
			return &table.GuardError{Index: l.index, Guard: l.LeaseIs, Got: strconv.FormatUint(token, 10)}
		}
	}
	return fmt.Errorf("%w: there are entries after the last one", errKey)
}
