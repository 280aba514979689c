package replicated

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// backend returns the backend that carries out operations: the engine of this node, or the
// server of the leader. changed ends when the answer may change. local is whether
// only the engine of this node is wanted.
func (n *Node) backend(local bool) (b protocol.Backend, changed context.Context, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.engine != nil {
		return n.engine, n.changed, nil
	}
	if local || n.lead.Here || n.lead.Leader == "" {
		return nil, n.changed, nil
	}
	url, err := n.leaderURL()
	if err != nil || url == "" || url == n.config.URL {
		return nil, n.changed, nil
	}
	if b = n.remotes[url]; b == nil {
		if b, err = n.config.Dial(url); err != nil {
			return nil, n.changed, fmt.Errorf("replicated: cannot use the server of the leader: %w", err)
		}
		n.remotes[url] = b
	}
	return b, n.changed, nil
}

// Do implements protocol.Backend.
func (n *Node) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	return n.do(ctx, op, false)
}

// DoAll carries out operations in their order. An engine that carries them out writes one
// entry for all.
func (n *Node) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	return n.doAll(ctx, ops, false)
}

// Local is the backend for requests that another node has forwarded. It does not forward
// them again.
func (n *Node) Local() protocol.Backend { return local{n} }

type local struct{ *Node }

func (l local) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	return l.do(ctx, op, true)
}

func (l local) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	return l.doAll(ctx, ops, true)
}

func (l local) Connect(group, pid string) (protocol.Connection, error) {
	b, _, err := l.backend(true)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, errNoLeader
	}
	return b.Connect(group, pid)
}

var (
	errNoLeader      = errors.New("replicated: no node leads")
	errLeaderChanged = errors.New("replicated: the leader has changed, so the outcome is not known")
)

func (n *Node) do(ctx context.Context, op protocol.Operation, local bool) (protocol.Result, error) {
	results, err := n.doAll(ctx, []protocol.Operation{op}, local)
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

func (n *Node) doAll(ctx context.Context, ops []protocol.Operation, local bool) ([]protocol.Result, error) {
	timeout := time.NewTimer(n.config.Wait)
	defer timeout.Stop()
	for {
		b, changed, err := n.backend(local)
		if err != nil {
			return unavailable(ops, err.Error()), nil
		}
		if b != nil {
			return carryOut(ctx, b, ops, changed)
		}
		// The state of a follower changes without a change of the leader: poll it.
		poll := time.NewTimer(retryInterval)
		select {
		case <-changed.Done():
		case <-poll.C:
		case <-timeout.C:
			return unavailable(ops, "no node leads, try again later"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.ctx.Done():
			return unavailable(ops, "the server is shutting down"), nil
		}
		poll.Stop()
	}
}

// carryOut carries out operations at a backend. It does not wait for the answer of another
// node that leads no longer: its host may be lost.
func carryOut(ctx context.Context, b protocol.Backend, ops []protocol.Operation, changed context.Context) (results []protocol.Result, err error) {
	if _, here := b.(*engine.Engine); !here {
		remote, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(changed, func() { cancel(errLeaderChanged) })()
		defer func() {
			if err != nil && context.Cause(remote) == errLeaderChanged {
				err = errLeaderChanged
			}
		}()
		ctx = remote
	}
	if len(ops) == 1 {
		r, err := b.Do(ctx, ops[0])
		return []protocol.Result{r}, err
	}
	if batch, ok := b.(interface {
		DoAll(context.Context, []protocol.Operation) ([]protocol.Result, error)
	}); ok {
		return batch.DoAll(ctx, ops)
	}
	results = make([]protocol.Result, len(ops))
	for i, op := range ops {
		if results[i], err = b.Do(ctx, op); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func unavailable(ops []protocol.Operation, text string) []protocol.Result {
	return refuseAll(ops, protocol.Result{Status: protocol.Unavailable, Error: text})
}
