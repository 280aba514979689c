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

// ownsStore reports whether the store is in this process.
func (e *Carrier) ownsStore() bool { return e.settings.Memory != nil || !isURL(e.config.Store) }

// pid is the pid of a new worker: "" for the usual one.
func (e *Carrier) pid() string {
	if !e.ownsStore() {
		return ""
	}
	return fmt.Sprintf("%s%016x%016x", ownerPrefix, rand.Uint64(), rand.Uint64())
}

// recover releases the tasks of the processes that had the store before. A task that is
// released twice, or settled at the same time, keeps its state.
func (e *Carrier) recover(own string) {
	search := protocol.TaskSearch{State: protocol.TaskAcquired, Limit: protocol.MaxSearch}
	released := 0
	for {
		r, err := e.source.Do(context.Background(), search)
		if err == nil && r.Status != protocol.OK {
			err = fmt.Errorf("status %d: %s", r.Status, r.Error)
		}
		var ops []protocol.Operation
		for _, t := range r.Tasks {
			if t.PID != nil && *t.PID != own && strings.HasPrefix(*t.PID, ownerPrefix) {
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
