package edges

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// ownerPrefix begins the pids of workers in the process that has the store in a folder. Only one
// process at a time has it, so a task that an owner with another pid has acquired belongs to a
// process that has ended. It need not wait for the end of its lease.
const ownerPrefix = "owner-"

// nodePrefix begins the pids of workers in the processes of a node that keeps the store with
// others, before the name of the node and a colon. Only one process at a time has the log of
// a node, so the same is true among them.
const nodePrefix = "node:"

// owned is how the pids of this process and of its predecessors begin. "": there are no
// predecessors, or others may run at the same time. With a store on several nodes it opens
// the store.
func (e *Carrier) owned() (prefix string, err error) {
	switch {
	case e.replicated():
		b, err := e.source.get()
		if err != nil {
			return "", err
		}
		r, ok := b.Backend.(Replica)
		if !ok { // a replay has no store
			return "", nil
		}
		return nodePrefix + r.Name() + ":", nil
	case e.settings.Memory == nil && isURL(e.config.Store):
		return "", nil
	}
	return ownerPrefix, nil
}

// pid is the pid of a new worker: "" for the usual one.
func (e *Carrier) pid() (string, error) {
	prefix, err := e.owned()
	if err != nil || prefix == "" {
		return "", err
	}
	return newPID(prefix), nil
}

func newPID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// ofPredecessor reports whether a predecessor of this process had the pid. The name of another node may
// begin with the name of this node and a colon.
func ofPredecessor(pid, prefix string) bool {
	rest, ok := strings.CutPrefix(pid, prefix)
	return ok && !strings.Contains(rest, ":")
}

// recover releases the tasks of the processes that had the store, or the log of this node,
// before. A task that is released twice, or settled at the same time, keeps its state.
func (e *Carrier) recover(own string) {
	prefix, err := e.owned()
	if err != nil || prefix == "" {
		return
	}
	search := protocol.TaskSearch{State: protocol.TaskAcquired, Limit: protocol.MaxSearch}
	released := 0
	for {
		r, err := e.source.Do(context.Background(), search)
		if err == nil && r.Status != protocol.OK {
			err = fmt.Errorf("status %d: %s", r.Status, r.Error)
		}
		var ops []protocol.Operation
		for _, t := range r.Tasks {
			if t.PID != nil && *t.PID != own && ofPredecessor(*t.PID, prefix) {
				ops = append(ops, protocol.TaskRelease{ID: t.ID, Version: t.Version})
			}
		}
		if err == nil && len(ops) > 0 {
			_, err = e.source.DoAll(context.Background(), ops)
			released += len(ops)
		}
		if err != nil {
			if !errors.Is(err, durable.ErrStopping) {
				e.log.Warn("topogen: durable executions of an earlier process continue when their leases end", "error", err)
			}
			return
		}
		if search.Cursor = r.Cursor; search.Cursor == "" {
			break
		}
	}
	if released > 0 {
		e.log.Info("topogen: durable executions of an earlier process continue", "topology", e.config.Topology, "executions", released)
	}
}
