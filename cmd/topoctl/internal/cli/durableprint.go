package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// promiseObject is a promise in JSON, with its values decoded.
type promiseObject struct {
	ID        string                `json:"id"`
	State     protocol.PromiseState `json:"state"`
	Param     valueObject           `json:"param"`
	Value     valueObject           `json:"value"`
	Tags      map[string]string     `json:"tags"`
	TimeoutAt int64                 `json:"timeoutAt"`
	CreatedAt int64                 `json:"createdAt"`
	SettledAt *int64                `json:"settledAt,omitempty"`
}

type valueObject struct {
	Headers map[string]string `json:"headers,omitempty"`
	Data    json.RawMessage   `json:"data,omitempty"`
}

func newValueObject(v protocol.Value, raw bool) valueObject {
	o := valueObject{Headers: v.Headers}
	if decoded, ok := readData(v); ok && !raw {
		o.Data = decoded
	} else if v.Data != nil {
		o.Data = quotedJSON(*v.Data)
	}
	return o
}

func newPromiseObject(p *protocol.Promise, raw bool) promiseObject {
	return promiseObject{
		ID: p.ID, State: p.State, Param: newValueObject(p.Param, raw), Value: newValueObject(p.Value, raw),
		Tags: tagsObject(p.Tags), TimeoutAt: p.TimeoutAt, CreatedAt: p.CreatedAt, SettledAt: p.SettledAt,
	}
}

// tagsObject returns tags that are {} in JSON if there are none.
func tagsObject(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return tags
}

func newPromiseObjects(list []protocol.Promise, raw bool) []promiseObject {
	objects := make([]promiseObject, len(list))
	for i := range list {
		objects[i] = newPromiseObject(&list[i], raw)
	}
	return objects
}

// newTaskObject returns a task whose list of resumes is [] in JSON if it is empty.
func newTaskObject(t *protocol.Task) *protocol.Task {
	o := *t
	o.Resumes = orEmpty(o.Resumes)
	return &o
}

func newTaskObjects(list []protocol.Task) []protocol.Task {
	objects := make([]protocol.Task, len(list))
	for i := range list {
		objects[i] = *newTaskObject(&list[i])
	}
	return objects
}

// scheduleObject is a schedule in JSON, with its parameter decoded.
type scheduleObject struct {
	ID             string            `json:"id"`
	Cron           string            `json:"cron"`
	PromiseID      string            `json:"promiseId"`
	PromiseTimeout int64             `json:"promiseTimeout"`
	PromiseParam   valueObject       `json:"promiseParam"`
	PromiseTags    map[string]string `json:"promiseTags"`
	CreatedAt      int64             `json:"createdAt"`
	NextRunAt      int64             `json:"nextRunAt"`
	LastRunAt      *int64            `json:"lastRunAt,omitempty"`
}

func newScheduleObject(s *protocol.Schedule, raw bool) scheduleObject {
	return scheduleObject{
		ID: s.ID, Cron: s.Cron, PromiseID: s.PromiseID, PromiseTimeout: s.PromiseTimeout, PromiseParam: newValueObject(s.PromiseParam, raw),
		PromiseTags: tagsObject(s.PromiseTags), CreatedAt: s.CreatedAt, NextRunAt: s.NextRunAt, LastRunAt: s.LastRunAt,
	}
}

// millis formats a time of the protocol in UTC. A time outside of the range of RFC 3339,
// such as a deadline that means never, is printed as the number.
func millis(ms int64) string {
	text := seen(time.UnixMilli(ms), "2006-01-02T15:04:05.000Z")
	if text == unknown {
		return strconv.FormatInt(ms, 10)
	}
	return text
}

// milliseconds formats a duration of the protocol. A duration that is too long for
// time.Duration is printed as the number.
func milliseconds(ms int64) string {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	if ms < -longest || ms > longest {
		return strconv.FormatInt(ms, 10) + "ms"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

func millisOrNone(ms *int64) string {
	if ms == nil {
		return unknown
	}
	return millis(*ms)
}

// fields are the lines of one record: names and texts.
type fields [][2]string

func (f fields) print(w io.Writer) error {
	width := 0
	for _, line := range f {
		width = max(width, len(line[0]))
	}
	var b strings.Builder
	for _, line := range f {
		fmt.Fprintf(&b, "%-*s  %s\n", width, line[0], oneLine(line[1]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// add appends a line for each text, the first with the name. Without texts it appends a dash.
func (f fields) add(name string, texts []string) fields {
	if len(texts) == 0 {
		texts = []string{unknown}
	}
	for _, text := range texts {
		f = append(f, [2]string{name, text})
		name = ""
	}
	return f
}

func promiseFields(p *protocol.Promise, raw bool) fields {
	f := fields{
		{"id", p.ID},
		{"state", string(p.State)},
		{"created", millis(p.CreatedAt)},
		{"timeout", millis(p.TimeoutAt)},
		{"settled", millisOrNone(p.SettledAt)},
		{"param", dataText(p.Param, raw)},
	}
	if len(p.Param.Headers) > 0 {
		f = f.add("headers", joined(p.Param.Headers))
	}
	f = append(f, [2]string{"value", dataText(p.Value, raw)})
	if len(p.Value.Headers) > 0 {
		f = f.add("headers", joined(p.Value.Headers))
	}
	return f.add("tags", joined(p.Tags))
}

func taskFields(t *protocol.Task) fields {
	f := fields{
		{"id", t.ID},
		{"state", string(t.State)},
		{"version", strconv.FormatInt(t.Version, 10)},
	}
	if t.PID != nil {
		f = append(f, [2]string{"pid", *t.PID})
	}
	if t.TTL != nil {
		f = append(f, [2]string{"ttl", milliseconds(*t.TTL)})
	}
	return f.add("resumes", t.Resumes)
}

func scheduleFields(s *protocol.Schedule, raw bool) fields {
	f := fields{
		{"id", s.ID},
		{"cron", s.Cron},
		{"created", millis(s.CreatedAt)},
		{"last", millisOrNone(s.LastRunAt)},
		{"next", millis(s.NextRunAt)},
		{"promise", s.PromiseID},
		{"timeout", milliseconds(s.PromiseTimeout)},
		{"param", dataText(s.PromiseParam, raw)},
	}
	return f.add("tags", joined(s.PromiseTags))
}

func promiseTable(list []protocol.Promise) table {
	t := table{{"ID", "STATE", "CREATED", "TIMEOUT", "TARGET"}}
	for i := range list {
		p := &list[i]
		t = append(t, []string{p.ID, string(p.State), millis(p.CreatedAt), millis(p.TimeoutAt), orNone(p.Tags[protocol.TagTarget])})
	}
	return t
}

func taskTable(list []protocol.Task) table {
	t := table{{"ID", "STATE", "VERSION", "PID", "RESUMES"}}
	for i := range list {
		task := &list[i]
		pid := ""
		if task.PID != nil {
			pid = *task.PID
		}
		t = append(t, []string{task.ID, string(task.State), strconv.FormatInt(task.Version, 10), orNone(pid), strconv.Itoa(len(task.Resumes))})
	}
	return t
}

func scheduleTable(list []protocol.Schedule) table {
	t := table{{"ID", "CRON", "LAST", "NEXT", "PROMISE"}}
	for i := range list {
		s := &list[i]
		t = append(t, []string{s.ID, s.Cron, millisOrNone(s.LastRunAt), millis(s.NextRunAt), s.PromiseID})
	}
	return t
}
