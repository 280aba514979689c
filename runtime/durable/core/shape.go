package core

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// shape returns why an operation gets status 400 whatever the store contains, or "". The
// decoder of package protocol checks the same for requests from outside; programs in the
// same process have no decoder.
func shape(op protocol.Operation, strict bool) string {
	switch op := op.(type) {
	case protocol.PromiseGet:
		return badID("id", op.ID)
	case protocol.PromiseCreate:
		return badCreate(&op, strict)
	case protocol.PromiseSettle:
		return badSettle(&op)
	case protocol.RegisterCallback:
		if op.Awaited == op.Awaiter {
			return "awaited and awaiter must be different promises"
		}
		return first(badID("awaited", op.Awaited), badID("awaiter", op.Awaiter))
	case protocol.RegisterListener:
		return first(badID("awaited", op.Awaited), badAddress("address", op.Address))
	case protocol.PromiseSearch:
		return first(badPromiseState(op.State), badTexts("tags", op.Tags), badLimit(op.Limit))
	case protocol.TaskSearch:
		return first(badTaskState(op.State), badLimit(op.Limit))
	case protocol.ScheduleGet:
		return badID("id", op.ID)
	case protocol.ScheduleDelete:
		return badID("id", op.ID)
	case protocol.ScheduleSearch:
		return first(badTexts("tags", op.Tags), badLimit(op.Limit))
	case protocol.ScheduleCreate:
		return badSchedule(&op, strict)
	case protocol.DebugTick:
		return badTime("time", op.Time)
	default:
		return taskShape(op, strict)
	}
}

func taskShape(op protocol.Operation, strict bool) string {
	switch op := op.(type) {
	case protocol.TaskGet:
		return badID("id", op.ID)
	case protocol.TaskHalt:
		return badID("id", op.ID)
	case protocol.TaskContinue:
		return badID("id", op.ID)
	case protocol.TaskRelease:
		return badRef(op.ID, op.Version)
	case protocol.TaskAcquire:
		return first(badRef(op.ID, op.Version), badLease(op.PID, op.TTL))
	case protocol.TaskCreate:
		return badTaskCreate(&op, strict)
	case protocol.TaskFulfill:
		if op.Action.ID != op.ID {
			return "the action must settle the promise of the task"
		}
		return first(badRef(op.ID, op.Version), badSettle(&op.Action))
	case protocol.TaskSuspend:
		return badSuspend(&op)
	case protocol.TaskFence:
		return badFence(&op)
	case protocol.TaskHeartbeat:
		return badHeartbeat(&op)
	}
	return ""
}

func first(refusals ...string) string {
	for _, r := range refusals {
		if r != "" {
			return r
		}
	}
	return ""
}

func badID(field, id string) string {
	switch {
	case id == "":
		return field + " must not be empty"
	case len(id) > protocol.MaxID:
		return fmt.Sprintf("%s must have at most %d bytes, got %d", field, protocol.MaxID, len(id))
	case strings.IndexByte(id, 0) >= 0:
		return field + " must not contain U+0000"
	case !utf8.ValidString(id):
		return field + " must be valid UTF-8"
	}
	return ""
}

func badTime(field string, ms int64) string {
	if ms < 0 || ms > protocol.MaxTime {
		return fmt.Sprintf("%s must be between 0 and %d ms, got %d", field, int64(protocol.MaxTime), ms)
	}
	return ""
}

func badRef(id string, version int64) string {
	if version < 0 || version > protocol.MaxVersion {
		return fmt.Sprintf("version must be between 0 and %d, got %d", int64(protocol.MaxVersion), version)
	}
	return badID("id", id)
}

func badLease(pid string, ttl int64) string {
	if ttl <= 0 || ttl > protocol.MaxTime {
		return fmt.Sprintf("ttl must be between 1 and %d ms, got %d", int64(protocol.MaxTime), ttl)
	}
	return badID("pid", pid)
}

func badTexts(field string, m map[string]string) string {
	if len(m) > protocol.MaxTags {
		return fmt.Sprintf("%s must have at most %d entries, got %d", field, protocol.MaxTags, len(m))
	}
	for k, v := range m {
		switch {
		case len(k) > protocol.MaxTagKey:
			return fmt.Sprintf("a key of %s must have at most %d bytes, got %d", field, protocol.MaxTagKey, len(k))
		case len(v) > protocol.MaxTagValue:
			return fmt.Sprintf("a value of %s must have at most %d bytes, got %d", field, protocol.MaxTagValue, len(v))
		case strings.IndexByte(k, 0) >= 0 || strings.IndexByte(v, 0) >= 0:
			return field + " must not contain U+0000"
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return field + " must be valid UTF-8"
		}
	}
	return ""
}

// valueMax is the length of the data of a value. Requests from outside are far below it.
const valueMax = 64 << 20

func badValue(field string, v protocol.Value) string {
	if v.Data != nil {
		if len(*v.Data) > valueMax {
			return fmt.Sprintf("the data of %s must have at most %d bytes, got %d", field, valueMax, len(*v.Data))
		}
		if !utf8.ValidString(*v.Data) {
			return "the data of " + field + " must be valid UTF-8"
		}
	}
	return badTexts("the headers of "+field, v.Headers)
}

func badCreate(op *protocol.PromiseCreate, strict bool) string {
	if bad := first(badID("id", op.ID), badTime("timeoutAt", op.TimeoutAt), badTags("tags", op.Tags, strict), badValue("param", op.Param)); bad != "" {
		return bad
	}
	if op.Origin != "" {
		return badID("resonate:origin", op.Origin)
	}
	return ""
}

// badTags checks the tags of a new promise.
func badTags(field string, tags map[string]string, strict bool) string {
	if bad := badTexts(field, tags); bad != "" {
		return bad
	}
	if target, ok := tags[protocol.TagTarget]; ok {
		if bad := badAddress(protocol.TagTarget, target); bad != "" {
			return bad
		}
		if strict && tags[protocol.TagTimer] == "true" {
			return "a promise must not have both a timer and a target"
		}
		if delay, ok := tags[protocol.TagDelay]; ok {
			if ms, err := strconv.ParseInt(delay, 10, 64); err != nil || ms < 0 || ms > protocol.MaxTime {
				return protocol.TagDelay + " must be a time in milliseconds since 1970"
			}
		}
	}
	if origin, ok := tags[protocol.TagOrigin]; ok {
		return badID(protocol.TagOrigin, origin)
	}
	return ""
}

func badSettle(op *protocol.PromiseSettle) string {
	switch op.State {
	case protocol.Resolved, protocol.Rejected, protocol.RejectedCancel:
		return first(badID("id", op.ID), badValue("value", op.Value))
	}
	return "state must be resolved, rejected or rejected_canceled"
}

func badTaskCreate(op *protocol.TaskCreate, strict bool) string {
	if _, ok := op.Action.Tags[protocol.TagTarget]; !ok {
		return "the promise of a task must have the tag " + protocol.TagTarget
	}
	if _, ok := op.Action.Tags[protocol.TagDelay]; ok {
		return "a task that is acquired at once must not have the tag " + protocol.TagDelay
	}
	return first(badLease(op.PID, op.TTL), badCreate(&op.Action, strict))
}

func badSuspend(op *protocol.TaskSuspend) string {
	if n := len(op.Actions); n == 0 || n > protocol.MaxActions {
		return fmt.Sprintf("actions must have between 1 and %d entries, got %d", protocol.MaxActions, n)
	}
	for _, a := range op.Actions {
		if a.Awaiter != op.ID {
			return "the awaiter of each action must be the task that is suspended"
		}
		if a.Awaited == op.ID {
			return "a task must not wait for its own promise"
		}
		if bad := badID("awaited", a.Awaited); bad != "" {
			return bad
		}
	}
	return badRef(op.ID, op.Version)
}

// badFence leaves the strict rule to the inner operation, whose answer is a part of the
// fence's answer.
func badFence(op *protocol.TaskFence) string {
	var id, bad string
	switch a := op.Action.(type) {
	case protocol.PromiseCreate:
		id, bad = a.ID, badCreate(&a, false)
	case protocol.PromiseSettle:
		id, bad = a.ID, badSettle(&a)
	default:
		return "the action must be promise.create or promise.settle"
	}
	if id == op.ID {
		return "the action must be on another promise than that of the task"
	}
	return first(badRef(op.ID, op.Version), bad)
}

func badHeartbeat(op *protocol.TaskHeartbeat) string {
	if n := len(op.Tasks); n > protocol.MaxActions {
		return fmt.Sprintf("tasks must have at most %d entries, got %d", protocol.MaxActions, n)
	}
	for _, ref := range op.Tasks {
		if bad := badRef(ref.ID, ref.Version); bad != "" {
			return bad
		}
	}
	return badID("pid", op.PID)
}

func badPromiseState(s protocol.PromiseState) string {
	if _, ok := stateOf(s); !ok && s != "" {
		return "state must be a state of a promise"
	}
	return ""
}

func badTaskState(s protocol.TaskState) string {
	if _, ok := taskStateOf(s); !ok && s != "" {
		return "state must be a state of a task"
	}
	return ""
}

func badLimit(limit int) string {
	if limit < 0 || limit > protocol.MaxSearch {
		return fmt.Sprintf("limit must be between 1 and %d, got %d", protocol.MaxSearch, limit)
	}
	return ""
}
