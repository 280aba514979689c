package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A recorder is the side of an execution that reads and writes promises. Its methods run
// in the goroutine of the function. An errExit means that the activation must end: the
// method has set the outcome, or fatal.
type recorder interface {
	// children returns the promises that have the execution as their parent.
	children(e *execution) ([]protocol.Promise, error)
	// run calls the function of a step.
	run(e *execution, run func(context.Context) (any, error)) (protocol.Value, error)
	// fence carries out operations while the lease is held, and returns their promises.
	fence(e *execution, ops ...protocol.Operation) ([]*protocol.Promise, error)
	// get reads a promise.
	get(e *execution, id string) (*protocol.Promise, error)
	// suspend suspends the task until one of the promises is settled. If one of them is
	// settled already, it puts the settled promises into e.settled and returns nil.
	suspend(e *execution, ids ...string) error
	// suspendUntil creates a timer and suspends the task until its deadline.
	suspendUntil(e *execution, timer protocol.PromiseCreate) (*protocol.Promise, error)
	// fulfill settles the promise of the execution.
	fulfill(e *execution, state protocol.PromiseState, value protocol.Value) error
	// release returns the task to the group.
	release(e *execution) error
	// halt stops the execution until a person continues it.
	halt(e *execution, reason error) error
}

// live is the recorder of a worker.
type live struct{ w *Worker }

// childrenPage is how many promises a search returns at once.
const childrenPage = 1000

func (l live) children(e *execution) ([]protocol.Promise, error) {
	if e.task.Version == 1 {
		return nil, nil // no activation came before
	}
	return l.search(e, map[string]string{protocol.TagParent: e.promise.ID, protocol.TagScope: "global"})
}

// search returns all promises with these tags. A page may be empty although more follow.
func (l live) search(e *execution, tags map[string]string) ([]protocol.Promise, error) {
	var all []protocol.Promise
	search := protocol.PromiseSearch{Tags: tags, Limit: childrenPage}
	for {
		result, err := l.send(e, search)
		switch {
		case err != nil:
			return nil, err
		case result.Status != protocol.OK:
			return nil, l.fail(e, refused(search, result))
		}
		all = append(all, result.Promises...)
		if result.Cursor == "" || result.Cursor == search.Cursor || len(all) > 2*l.w.config.Records {
			return all, nil
		}
		search.Cursor = result.Cursor
	}
}

func (l live) run(e *execution, run func(context.Context) (any, error)) (protocol.Value, error) {
	l.w.count(func(s *Stats) { s.Steps++ })
	return runStep(&e.context, run)
}

func (l live) fence(e *execution, ops ...protocol.Operation) ([]*protocol.Promise, error) {
	fenced := make([]protocol.Operation, len(ops))
	for i, op := range ops {
		fenced[i] = protocol.TaskFence{ID: e.task.ID, Version: e.task.Version, Action: op}
	}
	results, err := l.sendAll(e, fenced)
	if err != nil {
		return nil, err
	}
	promises := make([]*protocol.Promise, len(ops))
	for i, result := range results {
		if promises[i], err = l.fencedPromise(e, ops[i], result); err != nil {
			return nil, err
		}
	}
	return promises, nil
}

func (l live) fencedPromise(e *execution, op protocol.Operation, result protocol.Result) (*protocol.Promise, error) {
	switch {
	case result.Status == protocol.NotFound || result.Status == protocol.Conflict:
		return nil, l.lost(e)
	case result.Status != protocol.OK:
		return nil, l.fail(e, refused(op, result))
	case result.Action == nil || result.Action.Status != protocol.OK || result.Action.Promise == nil:
		if result.Action != nil {
			result = *result.Action
		}
		return nil, l.fail(e, refused(op, result))
	}
	e.journal.add(result.Action.Promise) // the next attempt may begin in this activation
	return result.Action.Promise, nil
}

func (l live) get(e *execution, id string) (*protocol.Promise, error) {
	result, err := l.send(e, protocol.PromiseGet{ID: id})
	switch {
	case err != nil:
		return nil, err
	case result.Status == protocol.NotFound:
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	case result.Status != protocol.OK || result.Promise == nil:
		return nil, l.fail(e, refused(protocol.PromiseGet{ID: id}, result))
	}
	return result.Promise, nil
}

// recordsFew is the number of records from which on a suspension reads the promises
// first: a server that refuses a suspension returns all records.
const recordsFew = 100

func (l live) suspend(e *execution, ids ...string) error {
	if len(e.journal.records) >= recordsFew || e.position >= recordsFew {
		if settled, err := e.refresh(ids); settled || err != nil {
			return err
		}
	}
	result, err := l.send(e, suspension(e, ids))
	if err != nil {
		return err
	}
	return l.suspended(e, result, ids)
}

func suspension(e *execution, ids []string) protocol.TaskSuspend {
	s := protocol.TaskSuspend{ID: e.task.ID, Version: e.task.Version}
	for _, id := range ids {
		s.Actions = append(s.Actions, protocol.RegisterCallback{Awaited: id, Awaiter: e.task.ID})
	}
	return s
}

// suspended evaluates the result of a suspension.
func (l live) suspended(e *execution, result protocol.Result, ids []string) error {
	switch result.Status {
	case protocol.OK:
		e.outcome = Outcome{State: Suspended, Attempt: e.journal.attempt()}
		return errExit
	case protocol.Redirect:
		_, err := e.refresh(ids)
		return err
	case protocol.Conflict, protocol.NotFound:
		return l.lost(e)
	default: // a promise does not exist, or belongs to another call tree
		return refused(protocol.TaskSuspend{}, result)
	}
}

func (l live) suspendUntil(e *execution, timer protocol.PromiseCreate) (*protocol.Promise, error) {
	create := protocol.TaskFence{ID: e.task.ID, Version: e.task.Version, Action: timer}
	ids := []string{timer.ID}
	results, err := l.sendAll(e, []protocol.Operation{create, suspension(e, ids)})
	if err != nil {
		return nil, err
	}
	p, err := l.fencedPromise(e, timer, results[0])
	if err == nil {
		err = e.same(p, timer.Tags[tagStep])
	}
	if err != nil {
		return nil, err
	}
	if err := l.suspended(e, results[1], ids); err != nil {
		return nil, err
	}
	if settled := e.settled[p.ID]; settled != nil {
		p = settled
	}
	return p, nil
}

func (l live) fulfill(e *execution, state protocol.PromiseState, value protocol.Value) error {
	op := protocol.TaskFulfill{ID: e.task.ID, Version: e.task.Version, Action: protocol.PromiseSettle{ID: e.task.ID, State: state, Value: value}}
	result, err := l.send(e, op)
	switch {
	case err != nil:
		return err
	case result.Status == protocol.OK, result.Status == protocol.Conflict && l.fulfilled(e, state, value):
		return nil
	case result.Status == protocol.NotFound || result.Status == protocol.Conflict:
		return l.lost(e)
	default:
		return l.fail(e, refused(op, result))
	}
}

// fulfilled reports whether the promise has the result of this activation. An operation
// that was carried out without an answer is refused when it is repeated.
func (l live) fulfilled(e *execution, state protocol.PromiseState, value protocol.Value) bool {
	result, err := l.w.backend.Do(l.w.ctx, protocol.PromiseGet{ID: e.task.ID})
	if err != nil || result.Promise == nil || result.Promise.Value.Data == nil {
		return false
	}
	return result.Promise.State == state && *result.Promise.Value.Data == *value.Data
}

func (l live) release(e *execution) error {
	return l.w.releaseTask(e.task)
}

func (l live) halt(e *execution, reason error) error {
	result, err := l.send(e, protocol.TaskHalt{ID: e.task.ID})
	if err == nil && result.Status != protocol.OK {
		err = l.lost(e)
	}
	return err
}

// fail makes the attempt fail for a reason that another attempt would not change.
func (l live) fail(e *execution, err error) error {
	e.fatal = Final(err)
	return errExit
}

// lost finds out why the task is not held any longer.
func (l live) lost(e *execution) error {
	cause := ErrLeaseLost
	if result, err := l.w.backend.Do(l.w.ctx, protocol.PromiseGet{ID: e.task.ID}); err == nil && result.Promise != nil {
		cause = causeOf(result.Promise.State)
	}
	l.w.endContext(e, cause)
	return e.lost(cause)
}

// causeOf is why an execution ends whose promise has this state.
func causeOf(state protocol.PromiseState) error {
	switch state {
	case protocol.RejectedCancel:
		return ErrCanceled
	case protocol.RejectedTimeout:
		return ErrTimedOut
	default:
		return ErrLeaseLost
	}
}

func (l live) send(e *execution, op protocol.Operation) (protocol.Result, error) {
	results, err := l.sendAll(e, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

// sendAll repeats operations until the backend answers or the lease is lost. All of them
// may be repeated: creating and settling a promise again returns the promise, and the other
// operations are refused with 409 if they took effect the first time.
func (l live) sendAll(e *execution, ops []protocol.Operation) ([]protocol.Result, error) {
	results, err := l.w.doAll(e, ops)
	if err == nil && len(results) != len(ops) {
		err = fmt.Errorf("%w: %d results for %d operations", ErrUnavailable, len(results), len(ops))
	}
	if err != nil {
		l.w.log.Warn("durable: the server did not answer; the execution ends here and continues when its lease has ended", "id", e.task.ID, "error", err)
		l.w.endContext(e, ErrLeaseLost)
		return nil, e.lost(ErrLeaseLost)
	}
	return results, nil
}

// refused is the error of an operation that the backend refused.
func refused(op protocol.Operation, result protocol.Result) error {
	reason := result.Error
	if reason == "" {
		reason = fmt.Sprintf("status %d", result.Status)
	}
	return fmt.Errorf("%w: %s: %s", ErrRefused, op.Kind(), reason)
}

// lost ends an activation that does not hold its task any longer, or whose worker stops.
func (e *execution) lost(cause error) error {
	if !errors.Is(cause, ErrLeaseLost) && !errors.Is(cause, ErrCanceled) && !errors.Is(cause, ErrTimedOut) {
		return e.release(cause)
	}
	e.outcome = Outcome{State: Lost, Attempt: e.journal.attempt(), Err: cause}
	return errExit
}

// release returns the task, so that another worker continues at once.
func (e *execution) release(cause error) error {
	e.outcome = Outcome{State: Released, Attempt: e.journal.attempt(), Err: cause}
	if err := e.backend.release(e); err != nil {
		e.worker.log.Warn("durable: a task could not be released; another worker gets it when its lease ends", "id", e.task.ID, "error", err)
	}
	return errExit
}

// diverge halts an execution whose function takes another path than the recorded one.
func (e *execution) diverge(detail string) error {
	err := fmt.Errorf("%w: execution %s of %s: %s", ErrDiverged, e.promise.ID, e.function.Name, detail)
	e.outcome = Outcome{State: Halted, Attempt: e.journal.attempt(), Err: err}
	if e.backend.halt(e, err) != nil {
		return errExit // the task is lost, or its lease will end
	}
	e.outcome = Outcome{State: Halted, Attempt: e.journal.attempt(), Err: err}
	return errExit
}
