package edges

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/piper"
)

// replayVariable has the folder of a store, or the URL of a server. If it is set, Run replays the
// executions in the store with the handlers of this program, reports which of them take another
// path, and returns. It runs no step and writes nothing to the store.
const replayVariable = "TOPOGEN_REPLAY"

// replays reports whether Run will replay. Until it has, sends from outside have no effect, and
// other operations wait.
func (e *Carrier) replays() bool { return e.replay != "" && e.stepped == nil }

// waiting is the backend of senders outside while Run replays. A program that sends and waits
// for the result must not end before the replay does.
type waiting struct{ over <-chan struct{} }

// Do waits for the end of Run.
func (w waiting) Do(ctx context.Context, _ protocol.Operation) (protocol.Result, error) {
	select {
	case <-w.over:
		return protocol.Result{}, errEnded
	case <-ctx.Done():
		return protocol.Result{}, context.Cause(ctx)
	}
}

// Connect fails: a replay takes no tasks.
func (waiting) Connect(string, string) (protocol.Connection, error) { return nil, errEnded }

// replayAll replays all executions of the topology and prints a line for each that takes another
// path, and one with the totals.
func (e *Carrier) replayAll(ctx context.Context, p *piper.Pool, out io.Writer) error {
	b, err := e.openReplay()
	if err != nil {
		return err
	}
	defer func() { _ = b.close(context.Background()) }() // nothing was written
	p.Mute()
	var functions []durable.Function
	for i := range e.config.Edges {
		h := e.config.Edges[i].Handler
		functions = append(functions, durable.Function{Name: e.config.Edges[i].Function, Run: func(ctx durable.Context, arg json.RawMessage) (any, error) {
			d, err := h.open(arg)
			if err != nil {
				return nil, err
			}
			var result any
			d.unit.Work(func() { result, err = d.run(ctx, arg) })
			return result, err
		}})
	}
	replayed, diverged := 0, 0
	for r, err := range durable.Replay(ctx, durable.ReplayConfig{Backend: b, Group: e.config.Topology, Functions: functions, Logger: e.log}) {
		if err != nil {
			return err
		}
		if replayed++; r.Err != nil {
			diverged++
			fmt.Fprintln(out, oneLine(fmt.Sprintf("%s (%s): %v", r.ID, r.State, r.Err)))
		}
	}
	fmt.Fprintf(out, "%d executions of topology %q were replayed, %d of them diverge\n", replayed, e.config.Topology, diverged)
	if diverged > 0 {
		return fmt.Errorf("%w: %d of %d executions", durable.ErrDiverged, diverged, replayed)
	}
	return nil
}

// oneLine writes codes in place of the characters that do not print. An id may have any.
func oneLine(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// openReplay opens a store to read it.
func (e *Carrier) openReplay() (opened, error) {
	if isURL(e.replay) {
		return e.openClient(e.replay)
	}
	disk, err := store.OpenReadOnly(e.replay, store.Options{})
	if err != nil {
		return opened{}, fmt.Errorf("durable: opening the store to replay: %w", err)
	}
	c, err := core.New(core.Config{})
	if err != nil {
		return opened{}, err
	}
	return opened{&records{disk, c}, func(context.Context) error { return disk.Close() }, nil}, nil
}

// records is a backend that only reads.
type records struct {
	disk store.Store
	core *core.Core
}

// Do carries out an operation that reads.
func (r *records) Do(_ context.Context, op protocol.Operation) (result protocol.Result, err error) {
	switch op.(type) {
	case protocol.PromiseGet, protocol.PromiseSearch:
	default:
		return protocol.Result{Status: protocol.Forbidden, Error: "a replay writes nothing"}, nil
	}
	err = r.disk.View(func(tx store.Tx) error {
		at, _, err := engine.LastCommit(tx) // the deadlines of an old copy may have passed since then
		if err != nil {
			return err
		}
		result, _ = r.core.Step(tx, op, at)
		return tx.Err()
	})
	return result, err
}

// Connect fails: a replay takes no tasks.
func (r *records) Connect(string, string) (protocol.Connection, error) { return nil, errEnded }
