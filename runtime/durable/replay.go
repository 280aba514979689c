package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// ReplayConfig says what Replay runs.
type ReplayConfig struct {
	// Backend has the records. Replay calls promise.get and promise.search only.
	Backend Backend
	// Functions are the functions of the new program. Run is used before Dispatch.
	Functions []Function
	// Group is the group of the functions. A pending execution for it whose function is not in
	// the list is reported with ErrNoFunction. "" leaves out such executions.
	Group string
	// Pending leaves out the executions that have ended.
	Pending bool
	Logger  *slog.Logger // of the functions; slog.Default by default
}

// A Replayed is the result of replaying one recorded execution.
type Replayed struct {
	ID       string
	Function string
	State    protocol.PromiseState
	Records  int // of the execution
	Replayed int // positions that the function went through
	// Err is nil if the function takes the recorded path. It matches ErrDiverged if the
	// function takes another one, ErrArgument if the promise is pending and a worker would reject it,
	// because its argument cannot be decoded, and ErrNoFunction if there is no function; other errors
	// are of records that cannot be read.
	Err error
}

// Replay runs recorded executions through functions that may have changed since, and
// reports which of them take another path. It runs no step and writes nothing: a function
// ends where its records end. Functions for which there is no execution are ignored, and
// executions of other groups too.
func Replay(ctx context.Context, c ReplayConfig) iter.Seq2[Replayed, error] {
	return func(yield func(Replayed, error) bool) {
		w, err := NewWorker(Config{Backend: c.Backend, Group: "replay", Functions: c.Functions, Logger: c.Logger})
		if err != nil {
			yield(Replayed{}, err)
			return
		}
		defer w.cancel()
		if w.target = ""; c.Group != "" { // the target of calls that name none
			w.target = protocol.Target(c.Group)
		}
		search := protocol.PromiseSearch{Tags: map[string]string{protocol.TagScope: "global"}, Limit: childrenPage}
		if c.Pending {
			search.State = protocol.Pending
		}
		for p, err := range searchAll(ctx, w, search) {
			if err != nil {
				yield(Replayed{}, err)
				return
			}
			name, arg, err := decodeCall(p.Param)
			f := w.functions[name]
			var r Replayed
			switch target := p.Tags[protocol.TagTarget]; {
			case err != nil || target == "":
				continue
			case f != nil:
				r = w.replay(ctx, f, p, arg)
			case c.Group != "" && target == protocol.Target(c.Group) && p.State == protocol.Pending:
				r = Replayed{ID: p.ID, Function: name, State: p.State, Err: fmt.Errorf("%w %q", ErrNoFunction, name)}
			default:
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// searchAll yields the promises that a search finds, page by page.
func searchAll(ctx context.Context, w *Worker, search protocol.PromiseSearch) iter.Seq2[*protocol.Promise, error] {
	return func(yield func(*protocol.Promise, error) bool) {
		for {
			result, err := w.do(ctx, search)
			if err == nil && result.Status != protocol.OK {
				err = refused(search, result)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range result.Promises {
				if !yield(&result.Promises[i], nil) {
					return
				}
			}
			if result.Cursor == "" || result.Cursor == search.Cursor {
				return
			}
			search.Cursor = result.Cursor
		}
	}
}

// replay replays one execution.
func (w *Worker) replay(ctx context.Context, f *Function, p *protocol.Promise, arg json.RawMessage) Replayed {
	r := Replayed{ID: p.ID, Function: f.Name, State: p.State}
	var records []protocol.Promise
	for record, err := range searchAll(ctx, w, protocol.PromiseSearch{Tags: map[string]string{protocol.TagParent: p.ID}, Limit: childrenPage}) {
		if err != nil {
			r.Err = err
			return r
		}
		records = append(records, *record)
	}
	e := &execution{
		worker: w, function: f, promise: p, arg: arg, origin: originOf(p),
		task: protocol.TaskRef{ID: p.ID}, journal: newJournal(p.ID, records), complete: true,
		acquired: time.Time{}, finished: make(chan struct{}),
	}
	e.backend = &replayer{w: w, settled: p.State == protocol.Resolved || p.State == protocol.Rejected}
	a := &Activation{e: e}
	if f.Run != nil {
		a.Run(ctx, f.Run)
	} else {
		f.Dispatch(a)
		select {
		case <-e.finished:
		case <-ctx.Done():
			r.Err = ctx.Err()
			return r
		}
	}
	r.Records, r.Replayed = len(e.journal.records), e.position
	switch e.outcome.State {
	case Halted, Lost:
		r.Err = e.outcome.Err
	case Failed:
		if p.State == protocol.Pending && errors.Is(e.outcome.Err, ErrArgument) {
			r.Err = e.outcome.Err
		}
	}
	return r
}

// A replayer is the recorder of a replay. The activation ends where the records end.
type replayer struct {
	w       *Worker
	settled bool // the function ended in the record, so it must not go beyond its records
}

// beyond ends the activation at a call that has no record.
func (r *replayer) beyond(e *execution, call string) error {
	if r.settled {
		return e.diverge(fmt.Sprintf("after position %d it calls %s, and the recorded function had ended", e.position-1, call))
	}
	e.outcome = Outcome{State: Suspended, Attempt: e.journal.attempt()}
	return errExit
}

func (r *replayer) children(*execution) ([]protocol.Promise, error) { return nil, nil }

func (r *replayer) run(e *execution, _ func(context.Context) (any, error)) (protocol.Value, error) {
	return protocol.Value{}, r.beyond(e, "another step")
}

func (r *replayer) fence(e *execution, ops ...protocol.Operation) ([]*protocol.Promise, error) {
	return nil, r.beyond(e, "another durable function")
}

func (r *replayer) get(e *execution, id string) (*protocol.Promise, error) {
	p, err := r.w.promise(r.w.ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		e.outcome = Outcome{State: Lost, Attempt: e.journal.attempt(), Err: err}
		return nil, errExit
	}
	return p, err
}

func (r *replayer) suspend(e *execution, ids ...string) error {
	return r.beyond(e, "Wait for "+ids[0])
}

func (r *replayer) suspendUntil(e *execution, timer protocol.PromiseCreate) (*protocol.Promise, error) {
	if timer.Tags[tagStep] == nameAttempt && e.promise.State != protocol.Resolved {
		e.outcome = Outcome{State: Retrying, Attempt: e.journal.attempt()} // as recorded, or the last attempt
		return nil, errExit
	}
	return nil, r.beyond(e, timer.Tags[tagStep])
}

// fulfill compares the result with the recorded one.
func (r *replayer) fulfill(e *execution, state protocol.PromiseState, value protocol.Value) error {
	if !r.settled {
		return nil
	}
	if state != e.promise.State {
		return e.diverge(fmt.Sprintf("it ends %s, and its promise is %s", state, e.promise.State))
	}
	// The text of an error may contain an address or a time, so it is not compared.
	if state == protocol.Resolved && !sameJSON(value, e.promise.Value) {
		return e.diverge("its result differs from the recorded one")
	}
	return nil
}

func (r *replayer) release(*execution) error     { return nil }
func (r *replayer) halt(*execution, error) error { return nil }

// sameJSON reports whether two values have the same content, in any order of their keys.
func sameJSON(a, b protocol.Value) bool {
	x, errX := decode(a)
	y, errY := decode(b)
	if errX != nil || errY != nil {
		return false
	}
	if bytes.Equal(x, y) {
		return true
	}
	var u, v any
	return json.Unmarshal(x, &u) == nil && json.Unmarshal(y, &v) == nil && reflect.DeepEqual(u, v)
}
