package protocol

import "strconv"

// AppendRequest appends a request: JSON without a line break. The kind is that of the
// operation, and the version is [Version].
func AppendRequest(dst []byte, r *Request) []byte {
	h := r.Head
	if create, ok := r.Op.(PromiseCreate); ok && h.Origin == "" {
		h.Origin = create.Origin
	}
	return appendRequest(dst, &h, r.Op, r.ActionCorrID)
}

func appendRequest(dst []byte, h *Head, op Operation, actionCorrID string) []byte {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, op.Kind()...)
	dst = appendString(append(dst, `","head":{"corrId":`...), h.CorrID)
	dst = append(dst, `,"version":"`+Version+`"`...)
	if h.Auth != "" {
		dst = appendString(append(dst, `,"auth":`...), h.Auth)
	}
	if h.Origin != "" {
		dst = appendString(append(dst, `,"resonate:origin":`...), h.Origin)
	}
	if h.DebugTime != nil {
		dst = strconv.AppendInt(append(dst, `,"resonate:debug_time":`...), *h.DebugTime, 10)
	}
	dst = appendOperation(append(dst, `},"data":{`...), op, actionCorrID)
	return append(dst, "}}"...)
}

// appendOperation appends the fields of an operation, without braces.
func appendOperation(dst []byte, op Operation, actionCorrID string) []byte {
	var o object
	switch op := op.(type) {
	case PromiseGet:
		dst = appendString(o.key(dst, "id"), op.ID)
	case PromiseCreate:
		dst = appendString(o.key(dst, "id"), op.ID)
		dst = strconv.AppendInt(o.key(dst, "timeoutAt"), op.TimeoutAt, 10)
		dst = appendValue(o.key(dst, "param"), &op.Param)
		dst = appendPairs(o.key(dst, "tags"), op.Tags)
	case PromiseSettle:
		dst = appendString(o.key(dst, "id"), op.ID)
		dst = appendString(o.key(dst, "state"), string(op.State))
		dst = appendValue(o.key(dst, "value"), &op.Value)
	case RegisterCallback:
		dst = appendString(o.key(dst, "awaited"), op.Awaited)
		dst = appendString(o.key(dst, "awaiter"), op.Awaiter)
	case RegisterListener:
		dst = appendString(o.key(dst, "awaited"), op.Awaited)
		dst = appendString(o.key(dst, "address"), op.Address)
	case PromiseSearch:
		dst = appendSearch(dst, &o, string(op.State), op.Tags, op.Limit, op.Cursor)
	case ScheduleGet:
		dst = appendString(o.key(dst, "id"), op.ID)
	case ScheduleCreate:
		dst = appendString(o.key(dst, "id"), op.ID)
		dst = appendString(o.key(dst, "cron"), op.Cron)
		dst = appendString(o.key(dst, "promiseId"), op.PromiseID)
		dst = strconv.AppendInt(o.key(dst, "promiseTimeout"), op.PromiseTimeout, 10)
		dst = appendValue(o.key(dst, "promiseParam"), &op.PromiseParam)
		dst = appendPairs(o.key(dst, "promiseTags"), op.PromiseTags)
	case ScheduleDelete:
		dst = appendString(o.key(dst, "id"), op.ID)
	case ScheduleSearch:
		dst = appendSearch(dst, &o, "", op.Tags, op.Limit, op.Cursor)
	case DebugTick:
		dst = strconv.AppendInt(o.key(dst, "time"), op.Time, 10)
	default:
		dst = appendTaskOperation(dst, op, actionCorrID)
	}
	return dst
}

func appendTaskOperation(dst []byte, op Operation, actionCorrID string) []byte {
	var o object
	switch op := op.(type) {
	case TaskGet:
		dst = appendString(o.key(dst, "id"), op.ID)
	case TaskCreate:
		dst = appendString(o.key(dst, "pid"), op.PID)
		dst = strconv.AppendInt(o.key(dst, "ttl"), op.TTL, 10)
		dst = appendInner(o.key(dst, "action"), op.Action.Origin, op.Action, actionCorrID)
	case TaskAcquire:
		dst = appendRef(dst, &o, op.ID, op.Version)
		dst = appendString(o.key(dst, "pid"), op.PID)
		dst = strconv.AppendInt(o.key(dst, "ttl"), op.TTL, 10)
	case TaskRelease:
		dst = appendRef(dst, &o, op.ID, op.Version)
	case TaskFulfill:
		dst = appendRef(dst, &o, op.ID, op.Version)
		dst = appendInner(o.key(dst, "action"), "", op.Action, actionCorrID)
	case TaskSuspend:
		dst = appendRef(dst, &o, op.ID, op.Version)
		dst = appendList(o.key(dst, "actions"), op.Actions, func(dst []byte, c *RegisterCallback) []byte {
			return appendInner(dst, "", *c, actionCorrID)
		})
	case TaskFence:
		dst = appendRef(dst, &o, op.ID, op.Version)
		create, _ := op.Action.(PromiseCreate)
		dst = appendInner(o.key(dst, "action"), create.Origin, op.Action, actionCorrID)
	case TaskHeartbeat:
		dst = appendString(o.key(dst, "pid"), op.PID)
		dst = appendList(o.key(dst, "tasks"), op.Tasks, func(dst []byte, t *TaskRef) []byte {
			var o object
			return append(appendRef(append(dst, '{'), &o, t.ID, t.Version), '}')
		})
	case TaskHalt:
		dst = appendString(o.key(dst, "id"), op.ID)
	case TaskContinue:
		dst = appendString(o.key(dst, "id"), op.ID)
	case TaskSearch:
		dst = appendSearch(dst, &o, string(op.State), nil, op.Limit, op.Cursor)
	}
	return dst
}

func appendInner(dst []byte, origin string, op Operation, corrID string) []byte {
	return appendRequest(dst, &Head{CorrID: corrID, Origin: origin}, op, "")
}

func appendRef(dst []byte, o *object, id string, version int64) []byte {
	dst = appendString(o.key(dst, "id"), id)
	return strconv.AppendInt(o.key(dst, "version"), version, 10)
}

func appendSearch(dst []byte, o *object, state string, tags map[string]string, limit int, cursor string) []byte {
	if state != "" {
		dst = appendString(o.key(dst, "state"), state)
	}
	if len(tags) > 0 {
		dst = appendPairs(o.key(dst, "tags"), tags)
	}
	if limit != 0 {
		dst = strconv.AppendInt(o.key(dst, "limit"), int64(limit), 10)
	}
	if cursor != "" {
		dst = appendString(o.key(dst, "cursor"), cursor)
	}
	return dst
}
