package protocol

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// AppendResponse appends the response to a request: JSON without a line break. A status
// of 400 or more comes with a string as data, as the protocol demands.
func AppendResponse(dst []byte, r *Request, res *Result) []byte {
	return appendResponse(dst, r.Kind, r.Head.CorrID, r, res)
}

func appendResponse(dst []byte, kind, corrID string, r *Request, res *Result) []byte {
	dst = append(dst, `{"kind":`...)
	dst = appendString(dst, kind)
	dst = append(dst, `,"head":{"corrId":`...)
	dst = appendString(dst, corrID)
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(res.Status), 10)
	dst = append(dst, `,"version":"`+Version+`"},"data":`...)
	if res.Status >= BadRequest {
		dst = appendString(dst, res.Error)
	} else {
		dst = appendData(dst, kind, r, res)
	}
	return append(dst, '}')
}

func appendData(dst []byte, kind string, r *Request, res *Result) []byte {
	switch {
	case kind == "debug.tick":
		return append(dst, "[]"...)
	case res.Snapshot != nil:
		return appendSnapshot(dst, res.Snapshot)
	}
	var o object
	dst = append(dst, '{')
	if res.Task != nil {
		dst = appendTask(o.key(dst, "task"), res.Task)
	}
	if res.Promise != nil {
		dst = appendPromise(o.key(dst, "promise"), res.Promise)
	}
	if res.Schedule != nil {
		dst = appendSchedule(o.key(dst, "schedule"), res.Schedule)
	}
	switch kind {
	case "promise.search":
		dst = appendList(o.key(dst, "promises"), res.Promises, appendPromise)
	case "task.search":
		dst = appendList(o.key(dst, "tasks"), res.Tasks, appendTask)
	case "schedule.search":
		dst = appendList(o.key(dst, "schedules"), res.Schedules, appendSchedule)
	case "task.fence":
		dst = appendAction(o.key(dst, "action"), r, res.Action)
		dst = appendList(o.key(dst, "preload"), res.Preload, appendPromise)
	case "task.create", "task.acquire":
		dst = appendList(o.key(dst, "preload"), res.Preload, appendPromise)
	case "task.suspend":
		if res.Status == Redirect {
			dst = appendList(o.key(dst, "preload"), res.Preload, appendPromise)
		}
	}
	if res.Cursor != "" {
		dst = appendString(o.key(dst, "cursor"), res.Cursor)
	}
	return append(dst, '}')
}

// appendAction appends the response to the action of a task.fence.
func appendAction(dst []byte, r *Request, res *Result) []byte {
	fence, ok := r.Op.(TaskFence)
	if !ok || res == nil {
		return append(dst, "null"...)
	}
	return appendResponse(dst, fence.Action.Kind(), r.ActionCorrID, nil, res)
}

// An object knows whether the next key of a JSON object needs a comma.
type object struct{ some bool }

func (o *object) key(dst []byte, name string) []byte {
	if o.some {
		dst = append(dst, ',')
	}
	o.some = true
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendList[T any](dst []byte, list []T, appendOne func([]byte, *T) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOne(dst, &list[i])
	}
	return append(dst, ']')
}

func appendPromise(dst []byte, p *Promise) []byte {
	dst = appendString(append(dst, `{"id":`...), p.ID)
	dst = appendString(append(dst, `,"state":`...), string(p.State))
	dst = appendValue(append(dst, `,"param":`...), &p.Param)
	dst = appendValue(append(dst, `,"value":`...), &p.Value)
	dst = appendPairs(append(dst, `,"tags":`...), p.Tags)
	dst = strconv.AppendInt(append(dst, `,"timeoutAt":`...), p.TimeoutAt, 10)
	dst = strconv.AppendInt(append(dst, `,"createdAt":`...), p.CreatedAt, 10)
	if p.SettledAt != nil {
		dst = strconv.AppendInt(append(dst, `,"settledAt":`...), *p.SettledAt, 10)
	}
	return append(dst, '}')
}

func appendTask(dst []byte, t *Task) []byte {
	dst = appendString(append(dst, `{"id":`...), t.ID)
	dst = appendString(append(dst, `,"state":`...), string(t.State))
	dst = strconv.AppendInt(append(dst, `,"version":`...), t.Version, 10)
	dst = appendList(append(dst, `,"resumes":`...), t.Resumes, func(dst []byte, s *string) []byte { return appendString(dst, *s) })
	if t.TTL != nil {
		dst = strconv.AppendInt(append(dst, `,"ttl":`...), *t.TTL, 10)
	}
	if t.PID != nil {
		dst = appendString(append(dst, `,"pid":`...), *t.PID)
	}
	return append(dst, '}')
}

func appendSchedule(dst []byte, s *Schedule) []byte {
	dst = appendString(append(dst, `{"id":`...), s.ID)
	dst = appendString(append(dst, `,"cron":`...), s.Cron)
	dst = appendString(append(dst, `,"promiseId":`...), s.PromiseID)
	dst = strconv.AppendInt(append(dst, `,"promiseTimeout":`...), s.PromiseTimeout, 10)
	dst = appendValue(append(dst, `,"promiseParam":`...), &s.PromiseParam)
	dst = appendPairs(append(dst, `,"promiseTags":`...), s.PromiseTags)
	dst = strconv.AppendInt(append(dst, `,"createdAt":`...), s.CreatedAt, 10)
	dst = strconv.AppendInt(append(dst, `,"nextRunAt":`...), s.NextRunAt, 10)
	if s.LastRunAt != nil {
		dst = strconv.AppendInt(append(dst, `,"lastRunAt":`...), *s.LastRunAt, 10)
	}
	return append(dst, '}')
}

func appendValue(dst []byte, v *Value) []byte {
	var o object
	dst = append(dst, '{')
	if len(v.Headers) > 0 {
		dst = appendPairs(o.key(dst, "headers"), v.Headers)
	}
	if v.Data != nil {
		dst = appendString(o.key(dst, "data"), *v.Data)
	}
	return append(dst, '}')
}

// appendPairs appends tags or headers in the order of their keys, so that the same record
// is always the same text.
func appendPairs(dst []byte, pairs map[string]string) []byte {
	var room [16]string
	keys := room[:0]
	for key := range pairs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, key)
		dst = append(dst, ':')
		dst = appendString(dst, pairs[key])
	}
	return append(dst, '}')
}

// appendString appends a JSON string. It replaces bytes that are not UTF-8 by U+FFFD, as
// encoding/json does. [Check] refuses such text.
func appendString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, text[from:i]...)
				dst = append(dst, "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}
