package protocol

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Check reports the first field of an operation that is beyond the limits of this
// package, or that is not text. [DecodeRequest] calls it. A program that hands operations
// to an engine in its own process must call it too.
func Check(op Operation) error {
	switch op := op.(type) {
	case PromiseGet:
		return checkID("id", op.ID)
	case PromiseCreate:
		return op.check()
	case PromiseSettle:
		return op.check()
	case RegisterCallback:
		return op.check()
	case RegisterListener:
		return first(checkID("awaited", op.Awaited), checkID("address", op.Address))
	case PromiseSearch:
		return first(checkPromiseState(op.State), checkTags("tags", op.Tags), checkSearch(op.Limit, op.Cursor))
	case TaskGet:
		return checkID("id", op.ID)
	case TaskCreate:
		return first(checkID("pid", op.PID), checkTTL(op.TTL), in("action.data", op.Action.check()))
	case TaskAcquire:
		return first(checkTask(op.ID, op.Version), checkID("pid", op.PID), checkTTL(op.TTL))
	case TaskRelease:
		return checkTask(op.ID, op.Version)
	case TaskFulfill:
		return first(checkTask(op.ID, op.Version), in("action.data", op.Action.check()))
	case TaskSuspend:
		return op.check()
	case TaskFence:
		return op.check()
	case TaskHeartbeat:
		return op.check()
	case TaskHalt:
		return checkID("id", op.ID)
	case TaskContinue:
		return checkID("id", op.ID)
	case TaskSearch:
		return first(checkTaskState(op.State), checkSearch(op.Limit, op.Cursor))
	case ScheduleGet:
		return checkID("id", op.ID)
	case ScheduleCreate:
		return op.check()
	case ScheduleDelete:
		return checkID("id", op.ID)
	case ScheduleSearch:
		return first(checkTags("tags", op.Tags), checkSearch(op.Limit, op.Cursor))
	case DebugTick:
		return checkRange("time", op.Time, 0, MaxTime)
	case DebugStart, DebugReset, DebugSnap, DebugStop:
		return nil
	}
	return problem("operation %T does not exist", op)
}

func (op *PromiseCreate) check() error {
	err := first(checkID("id", op.ID), checkRange("timeoutAt", op.TimeoutAt, 0, MaxTime), checkTags("tags", op.Tags))
	if err == nil && op.Origin != "" {
		err = checkID("origin", op.Origin)
	}
	return first(err, in("param", op.Param.check()))
}

func (op *PromiseSettle) check() error {
	err := checkID("id", op.ID)
	if err == nil && op.State != Resolved && op.State != Rejected && op.State != RejectedCancel {
		err = &Error{"state", "must be resolved, rejected or rejected_canceled"}
	}
	return first(err, in("value", op.Value.check()))
}

func (op *RegisterCallback) check() error {
	return first(checkID("awaited", op.Awaited), checkID("awaiter", op.Awaiter))
}

func (op *TaskSuspend) check() error {
	if err := checkTask(op.ID, op.Version); err != nil {
		return err
	}
	if len(op.Actions) > MaxActions {
		return &Error{"actions", fmt.Sprintf("has more than %d elements", MaxActions)}
	}
	for i := range op.Actions {
		if err := op.Actions[i].check(); err != nil {
			return in(fmt.Sprintf("actions[%d].data", i), err)
		}
	}
	return nil
}

func (op *TaskFence) check() error {
	if err := checkTask(op.ID, op.Version); err != nil {
		return err
	}
	switch action := op.Action.(type) {
	case PromiseCreate:
		return in("action.data", action.check())
	case PromiseSettle:
		return in("action.data", action.check())
	}
	return &Error{"action", "must be promise.create or promise.settle"}
}

func (op *TaskHeartbeat) check() error {
	if err := checkID("pid", op.PID); err != nil {
		return err
	}
	if len(op.Tasks) > MaxActions {
		return &Error{"tasks", fmt.Sprintf("has more than %d elements", MaxActions)}
	}
	for i, t := range op.Tasks {
		if err := checkTask(t.ID, t.Version); err != nil {
			return in(fmt.Sprintf("tasks[%d]", i), err)
		}
	}
	return nil
}

func (op *ScheduleCreate) check() error {
	return first(
		checkID("id", op.ID),
		checkText("cron", op.Cron, 1, MaxCron),
		checkID("promiseId", op.PromiseID),
		checkRange("promiseTimeout", op.PromiseTimeout, 0, MaxTime),
		in("promiseParam", op.PromiseParam.check()),
		checkTags("promiseTags", op.PromiseTags),
	)
}

func (v *Value) check() error {
	if err := checkTags("headers", v.Headers); err != nil {
		return err
	}
	if v.Data != nil && !utf8.ValidString(*v.Data) {
		return &Error{"data", "is not valid UTF-8"}
	}
	return nil
}

// first returns the first error. Its arguments are all evaluated, which costs little
// because a request is seldom wrong.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkID(field, id string) error { return checkText(field, id, 1, MaxID) }

// checkText checks text that the store uses in keys. U+0000 is refused, because other
// implementations of the protocol cannot store it.
func checkText(field, text string, shortest, longest int) error {
	switch {
	case len(text) < shortest:
		return &Error{field, "is empty"}
	case len(text) > longest:
		return &Error{field, fmt.Sprintf("is longer than %d bytes", longest)}
	case !utf8.ValidString(text):
		return &Error{field, "is not valid UTF-8"}
	case strings.IndexByte(text, 0) >= 0:
		return &Error{field, "contains U+0000"}
	}
	return nil
}

func checkTags(field string, tags map[string]string) error {
	if len(tags) > MaxTags {
		return &Error{field, fmt.Sprintf("has more than %d entries", MaxTags)}
	}
	for key, value := range tags {
		if err := checkText("", key, 0, MaxTagKey); err != nil {
			return &Error{field, fmt.Sprintf("has the key %.40q, which %v", key, err)}
		}
		if err := checkText("", value, 0, MaxTagValue); err != nil {
			return in(field, in(fmt.Sprintf("[%.40q]", key), err))
		}
	}
	return nil
}

func checkTask(id string, version int64) error {
	return first(checkID("id", id), checkRange("version", version, 0, MaxVersion))
}

func checkTTL(ttl int64) error { return checkRange("ttl", ttl, 1, MaxTime) }

func checkRange(field string, n, low, high int64) error {
	if n < low || n > high {
		return &Error{field, fmt.Sprintf("must be from %d to %d", low, high)}
	}
	return nil
}

func checkSearch(limit int, cursor string) error {
	return first(checkRange("limit", int64(limit), 0, MaxSearch), checkText("cursor", cursor, 0, MaxCursor))
}

func checkPromiseState(s PromiseState) error {
	switch s {
	case "", Pending, Resolved, Rejected, RejectedCancel, RejectedTimeout:
		return nil
	}
	return &Error{"state", "must be a state of a promise"}
}

func checkTaskState(s TaskState) error {
	switch s {
	case "", TaskPending, TaskAcquired, TaskSuspended, TaskHalted, TaskFulfilled:
		return nil
	}
	return &Error{"state", "must be a state of a task"}
}
