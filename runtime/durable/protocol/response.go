package protocol

import (
	"math"
	"unicode/utf8"
)

// DecodeResponse decodes the response to a request. An error is an [*Error]: the text is
// not a response to this request. A response that refuses the request is a Result with a
// Status of 400 or more. The caller must bound the length of the text.
func DecodeResponse(text []byte, r *Request) (Result, error) {
	if !utf8.Valid(text) {
		return Result{}, problem("the response is not valid UTF-8")
	}
	s := scanner{text: text}
	res, err := s.response(r.Op, r.Head.CorrID, r.ActionCorrID)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return Result{}, top("the response", err)
	}
	return res, nil
}

func (s *scanner) response(op Operation, corrID, actionCorrID string) (res Result, err error) {
	e, err := s.envelope()
	if err != nil {
		return res, err
	}
	res.Status = int(e.status)
	switch {
	case e.has&hasStatus == 0:
		return res, &Error{"head.status", "is missing"}
	case e.has&hasData == 0:
		return res, &Error{"data", "is missing"}
	case e.status != OK && e.status != Redirect && (e.status < BadRequest || e.status > 599):
		return res, &Error{"head.status", "is not a status of the protocol"}
	case e.kind != op.Kind() && e.status < BadRequest:
		return res, &Error{"kind", "is not the kind of the request"}
	case e.head.CorrID != corrID && e.status < BadRequest:
		return res, &Error{"head.corrId", "is not the corrId of the request"}
	}
	after, depth := s.at, s.depth
	s.at, s.depth = e.data, s.depth+1
	if e.status >= BadRequest {
		res.Error, err = s.string()
	} else {
		err = s.result(&res, op, actionCorrID)
	}
	s.at, s.depth = after, depth
	return res, in("data", err)
}

// result reads the data of a response that does not refuse the request.
func (s *scanner) result(res *Result, op Operation, actionCorrID string) error {
	if _, ok := op.(DebugTick); ok {
		return s.array(func(int) error { return s.skip() })
	}
	if _, ok := op.(DebugSnap); ok {
		snapshot, err := s.snapshot()
		res.Snapshot = &snapshot
		return err
	}
	err := s.object(func(key []byte) error {
		return inKey(key, s.resultPart(key, res, op, actionCorrID))
	})
	if err != nil {
		return err
	}
	return res.complete(op)
}

func (s *scanner) resultPart(key []byte, res *Result, op Operation, actionCorrID string) (err error) {
	switch string(key) {
	case "promise":
		res.Promise = new(Promise)
		*res.Promise, err = s.promise()
	case "task":
		res.Task = new(Task)
		*res.Task, err = s.task()
	case "schedule":
		res.Schedule = new(Schedule)
		*res.Schedule, err = s.schedule()
	case "preload":
		res.Preload, err = list(s, s.promise)
	case "promises":
		res.Promises, err = list(s, s.promise)
	case "tasks":
		res.Tasks, err = list(s, s.task)
	case "schedules":
		res.Schedules, err = list(s, s.schedule)
	case "cursor":
		if !s.null() {
			res.Cursor, err = s.string()
		}
	case "action":
		fence, ok := op.(TaskFence)
		if !ok {
			return s.skip()
		}
		var action Result
		action, err = s.response(fence.Action, actionCorrID, "")
		res.Action = &action
	default:
		return s.skip()
	}
	return err
}

// complete checks that a result has the records that the operation returns, so that a
// caller needs no check for nil.
func (res *Result) complete(op Operation) error {
	var promise, task, schedule, action bool
	switch op.(type) {
	case PromiseGet, PromiseCreate, PromiseSettle, RegisterCallback, RegisterListener, TaskFulfill:
		promise = true
	case TaskGet:
		task = true
	case TaskCreate, TaskAcquire:
		promise, task = true, true
	case ScheduleGet, ScheduleCreate:
		schedule = true
	case TaskFence:
		action = true
	}
	switch {
	case promise && res.Promise == nil:
		return &Error{"promise", "is missing"}
	case task && res.Task == nil:
		return &Error{"task", "is missing"}
	case schedule && res.Schedule == nil:
		return &Error{"schedule", "is missing"}
	case action && res.Action == nil:
		return &Error{"action", "is missing"}
	}
	return nil
}

func list[T any](s *scanner, read func() (T, error)) (list []T, err error) {
	err = s.array(func(i int) error {
		one, err := read()
		list = append(list, one)
		return element(i, err)
	})
	return list, err
}

// anyTime is the range of times in records. A server may have limits of its own.
func (s *scanner) anyTime() (int64, error) { return s.int(math.MinInt64+1, math.MaxInt64-1) }

func (s *scanner) optionalTime() (*int64, error) {
	if s.null() {
		return nil, nil
	}
	t, err := s.anyTime()
	return &t, err
}
