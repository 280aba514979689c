package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

var (
	settled   = int64(9007199254740993) // not a double
	ttl       = int64(60000)
	pid       = "p<1>&\u2028\"\\"
	text      = "line\nbreak\r\t\x00\x7fé😀"
	empty     = ""
	promiseA  = Promise{ID: "a", State: Pending, Tags: map[string]string{}, TimeoutAt: 5, CreatedAt: 1}
	promiseB  = Promise{ID: text, State: RejectedTimeout, Param: Value{Headers: map[string]string{"b": "2", "a": "1", "": text}, Data: &text}, Value: Value{Data: &empty}, Tags: map[string]string{TagTarget: "poll://any@g", "k": ""}, TimeoutAt: 1, CreatedAt: 2, SettledAt: &settled}
	taskA     = Task{ID: "a", State: TaskAcquired, Version: 1, Resumes: []string{"x", text}, TTL: &ttl, PID: &pid}
	taskB     = Task{ID: "b", State: TaskFulfilled, Resumes: []string{}}
	scheduleA = Schedule{ID: "s", Cron: "* * * * *", PromiseID: "s.{{.timestamp}}", PromiseTimeout: 7, PromiseParam: Value{Data: &text}, PromiseTags: map[string]string{TagTarget: "t"}, CreatedAt: 1, NextRunAt: 2, LastRunAt: &settled}
	scheduleB = Schedule{ID: "s", Cron: "* * * * *", PromiseID: "s", PromiseTags: map[string]string{}}
	snapshotA = Snapshot{
		Promises: []Promise{promiseA, promiseB}, PromiseTimeouts: []PromiseTimeout{{"a", 5}}, Callbacks: []RegisterCallback{{"a", "b"}},
		Listeners: []Listener{{"a", "http://x"}}, Tasks: []Task{taskA, taskB}, TaskTimeouts: []TaskTimeout{{"a", 1, 5}},
		Messages: []Envelope{{"poll://any@g", Message{Execute: &TaskRef{"a", 1}}}, {"http://x", Message{Unblock: &promiseB}}},
	}
)

type m = map[string]any

// responses has a response of each form that the protocol has.
var responses = []struct {
	op   Operation
	res  Result
	data any // what encoding/json makes of the data
}{
	{PromiseGet{ID: "a"}, Result{Status: OK, Promise: &promiseB}, m{"promise": promiseB}},
	{PromiseGet{ID: "a"}, Result{Status: NotFound, Error: text}, text},
	{PromiseCreate{ID: "a"}, Result{Status: OK, Promise: &promiseA}, m{"promise": promiseA}},
	{PromiseCreate{ID: "a"}, Result{Status: BadRequest, Error: "no"}, "no"},
	{PromiseSettle{ID: "a"}, Result{Status: OK, Promise: &promiseB}, m{"promise": promiseB}},
	{RegisterCallback{"a", "b"}, Result{Status: OK, Promise: &promiseA}, m{"promise": promiseA}},
	{RegisterListener{"a", "b"}, Result{Status: Unprocessable, Error: "no"}, "no"},
	{PromiseSearch{}, Result{Status: OK}, m{"promises": []any{}}},
	{PromiseSearch{}, Result{Status: OK, Promises: []Promise{promiseA, promiseB}, Cursor: text}, m{"promises": []any{promiseA, promiseB}, "cursor": text}},
	{TaskGet{ID: "a"}, Result{Status: OK, Task: &taskA}, m{"task": taskA}},
	{TaskCreate{}, Result{Status: OK, Task: &taskA, Promise: &promiseA}, m{"task": taskA, "promise": promiseA, "preload": []any{}}},
	{TaskCreate{}, Result{Status: OK, Task: &taskB, Promise: &promiseB, Preload: []Promise{promiseA}}, m{"task": taskB, "promise": promiseB, "preload": []any{promiseA}}},
	{TaskAcquire{}, Result{Status: OK, Task: &taskA, Promise: &promiseA, Preload: []Promise{promiseA, promiseB}}, m{"task": taskA, "promise": promiseA, "preload": []any{promiseA, promiseB}}},
	{TaskAcquire{}, Result{Status: Conflict, Error: "no"}, "no"},
	{TaskRelease{}, Result{Status: OK}, m{}},
	{TaskFulfill{}, Result{Status: OK, Promise: &promiseB}, m{"promise": promiseB}},
	{TaskSuspend{}, Result{Status: OK}, m{}},
	{TaskSuspend{}, Result{Status: Redirect}, m{"preload": []any{}}},
	{TaskSuspend{}, Result{Status: Redirect, Preload: []Promise{promiseB}}, m{"preload": []any{promiseB}}},
	{TaskFence{Action: PromiseCreate{}}, Result{Status: OK, Action: &Result{Status: OK, Promise: &promiseA}},
		m{"preload": []any{}, "action": m{"kind": "promise.create", "head": m{"corrId": "8", "status": 200, "version": Version}, "data": m{"promise": promiseA}}}},
	{TaskFence{Action: PromiseSettle{}}, Result{Status: OK, Action: &Result{Status: NotFound, Error: "no"}, Preload: []Promise{promiseA}},
		m{"preload": []any{promiseA}, "action": m{"kind": "promise.settle", "head": m{"corrId": "8", "status": 404, "version": Version}, "data": "no"}}},
	{TaskHeartbeat{}, Result{Status: OK}, m{}},
	{TaskHalt{}, Result{Status: OK}, m{}},
	{TaskContinue{}, Result{Status: OK}, m{}},
	{TaskSearch{}, Result{Status: OK, Tasks: []Task{taskB}}, m{"tasks": []any{taskB}}},
	{ScheduleGet{}, Result{Status: OK, Schedule: &scheduleA}, m{"schedule": scheduleA}},
	{ScheduleCreate{}, Result{Status: OK, Schedule: &scheduleB}, m{"schedule": scheduleB}},
	{ScheduleDelete{}, Result{Status: OK}, m{}},
	{ScheduleSearch{}, Result{Status: OK, Schedules: []Schedule{scheduleA, scheduleB}}, m{"schedules": []any{scheduleA, scheduleB}}},
	{DebugStart{}, Result{Status: OK}, m{}},
	{DebugStop{}, Result{Status: OK}, m{}},
	{DebugReset{}, Result{Status: OK}, m{}},
	{DebugReset{}, Result{Status: Forbidden, Error: "no"}, "no"},
	{DebugTick{}, Result{Status: OK}, []any{}},
	{DebugSnap{}, Result{Status: OK, Snapshot: &Snapshot{}}, m{"promises": []any{}, "promiseTimeouts": []any{}, "callbacks": []any{}, "listeners": []any{}, "tasks": []any{}, "taskTimeouts": []any{}, "messages": []any{}}},
	{DebugSnap{}, Result{Status: OK, Snapshot: &snapshotA}, m{
		"promises": snapshotA.Promises, "promiseTimeouts": snapshotA.PromiseTimeouts, "callbacks": snapshotA.Callbacks, "listeners": snapshotA.Listeners,
		"tasks": snapshotA.Tasks, "taskTimeouts": snapshotA.TaskTimeouts, "messages": []any{
			m{"address": "poll://any@g", "message": m{"kind": "execute", "head": m{}, "data": m{"task": m{"id": "a", "version": 1}}}},
			m{"address": "http://x", "message": m{"kind": "unblock", "head": m{}, "data": m{"promise": promiseB}}}}}},
}

func TestResponses(t *testing.T) {
	tested := map[string]bool{}
	for _, test := range responses {
		r := Request{Kind: test.op.Kind(), Head: Head{CorrID: "7\n"}, Op: test.op, ActionCorrID: "8"}
		tested[r.Kind] = true
		got := AppendResponse([]byte("before"), &r, &test.res)
		if !bytes.HasPrefix(got, []byte("before")) || bytes.ContainsAny(got, "\n\r") {
			t.Errorf("%s: %q", r.Kind, got)
		}
		got = got[len("before"):]
		want := m{"kind": r.Kind, "head": m{"corrId": "7\n", "status": test.res.Status, "version": Version}, "data": test.data}
		if !sameJSON(t, got, want) {
			t.Errorf("%s\ngot  %s\nwant %v", r.Kind, got, want)
		}
		res, err := DecodeResponse(got, &r)
		if err != nil {
			t.Errorf("%s: %v", got, err)
		} else if again := AppendResponse(nil, &r, &res); !bytes.Equal(got, again) {
			t.Errorf("decoded and written again\ngot  %s\nwant %s", again, got)
		}
	}
	for kind := range kinds {
		if !tested[kind] {
			t.Errorf("no response of kind %s is tested", kind)
		}
	}
}

// sameJSON compares text with what encoding/json makes of a value, without regard to the
// order of keys.
func sameJSON(t *testing.T, got []byte, want any) bool {
	t.Helper()
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(parsed(t, got), parsed(t, text))
}

func parsed(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// TestResponsesOfBadServers decodes responses that are not responses to the request.
func TestResponsesOfBadServers(t *testing.T) {
	const head = `"head":{"corrId":"7","status":200,"version":"2026-04-01"}`
	promise := `{"id":"a","state":"pending","param":{},"value":{},"tags":{},"timeoutAt":1,"createdAt":1}`
	for _, test := range []struct{ text, problem string }{
		{``, "the response is not JSON at byte 0"},
		{`<html>`, "the response is not JSON at byte 0"},
		{"\xff", "the response is not valid UTF-8"},
		{`[]`, "the response must be an object"},
		{`{}`, "head.status is missing"},
		{`{"kind":"promise.get",` + head + `}`, "data is missing"},
		{`{"kind":"promise.get",` + head + `,"data":"no"}`, "data must be an object"},
		{`{"kind":"promise.get",` + head + `,"data":{}}`, "data.promise is missing"},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":null}}`, "data.promise must be an object"},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":{}}}`, "data.promise.state is missing"},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":{"state":"pending"}}}`, "data.promise.id is missing"},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":{"id":"a","state":"done"}}}`, "data.promise.state must be a state of a promise"},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":{"id":"a","state":"pending","tags":{"a":1}}}}`, `data.promise.tags["a"] must be a string`},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":{"id":"a","state":"pending","timeoutAt":1.5}}}`, "data.promise.timeoutAt must be an integer"},
		{`{"kind":"promise.settle",` + head + `,"data":{"promise":` + promise + `}}`, "kind is not the kind of the request"},
		{`{"kind":"promise.get","head":{"corrId":"8","status":200,"version":"2026-04-01"},"data":{"promise":` + promise + `}}`, "head.corrId is not the corrId of the request"},
		{`{"kind":"promise.get","head":{"corrId":"7","status":"200"},"data":{}}`, "head.status must be an integer"},
		{`{"kind":"promise.get","head":{"corrId":"7","status":999},"data":""}`, "head.status is not a status of the protocol"},
		{`{"kind":"promise.get","head":{"corrId":"7","status":204},"data":{}}`, "head.status is not a status of the protocol"},
		{`{"kind":"promise.get","head":{"corrId":"7","status":404},"data":{}}`, "data must be a string"},
		{`{"kind":"promise.get",` + head + `,"data":{"promise":` + promise + `}} more`, "the response is not JSON at byte 189"},
		{`{"kind":"promise.get",` + head + `,"data":` + strings.Repeat("[", 100000), "the response is nested more than 32 levels deep"},
	} {
		r := Request{Head: Head{CorrID: "7"}, Op: PromiseGet{ID: "a"}}
		if _, err := DecodeResponse([]byte(test.text), &r); err == nil || err.Error() != test.problem {
			t.Errorf("%.200s\ngot  %v\nwant %s", test.text, err, test.problem)
		}
	}
}

// TestRefusalsWithoutCorrID: a server that could not read the request cannot repeat its
// kind and corrId.
func TestRefusalsWithoutCorrID(t *testing.T) {
	r := Request{Head: Head{CorrID: "7"}, Op: PromiseGet{ID: "a"}}
	res, err := DecodeResponse([]byte(`{"kind":"","head":{"corrId":"","status":400,"version":"2026-04-01"},"data":"too long"}`), &r)
	if err != nil || res.Status != BadRequest || res.Error != "too long" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestMessages(t *testing.T) {
	for _, test := range []struct {
		message   Message
		serverURL string
		want      any
	}{
		{Message{Execute: &TaskRef{text, 7}}, "", m{"kind": "execute", "head": m{}, "data": m{"task": m{"id": text, "version": 7}}}},
		{Message{Execute: &TaskRef{"a", 0}}, "http://s", m{"kind": "execute", "head": m{"serverUrl": "http://s"}, "data": m{"task": m{"id": "a", "version": 0}}}},
		{Message{Unblock: &promiseB}, "", m{"kind": "unblock", "head": m{}, "data": m{"promise": promiseB}}},
	} {
		got := AppendMessage(nil, &test.message, test.serverURL)
		if !sameJSON(t, got, test.want) || bytes.ContainsAny(got, "\r\n") {
			t.Errorf("got %s, want %v", got, test.want)
		}
		back, err := DecodeMessage(got)
		if err != nil || !reflect.DeepEqual(back, test.message) {
			t.Errorf("%s: %+v, %v", got, back, err)
		}
	}
	for _, test := range []struct{ text, problem string }{
		{`{}`, "kind is missing"},
		{`{"kind":"notify","data":{}}`, "kind must be execute or unblock"},
		{`{"kind":"execute"}`, "data is missing"},
		{`{"kind":"execute","data":{}}`, "data has neither a task nor a promise"},
		{`{"kind":"execute","data":{"promise":{}}}`, "data has neither a task nor a promise"},
		{`{"kind":"execute","data":{"task":{"id":"a"}}}`, "data.task.version is missing"},
		{`{"kind":"execute","data":{"task":{"id":"a","version":-1}}}`, "data.task.version must be from 0 to 9007199254740991"},
		{`{"kind":"unblock","data":{"promise":{"id":"a"}}}`, "data.promise.state is missing"},
		{`data: {}`, "the message is not JSON at byte 0"},
	} {
		if _, err := DecodeMessage([]byte(test.text)); err == nil || err.Error() != test.problem {
			t.Errorf("%s: got %v, want %s", test.text, err, test.problem)
		}
	}
}

func FuzzDecodeResponse(f *testing.F) {
	for i, test := range responses {
		r := Request{Kind: test.op.Kind(), Head: Head{CorrID: "7"}, Op: test.op, ActionCorrID: "8"}
		f.Add(i, AppendResponse(nil, &r, &test.res))
	}
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		op := responses[uint(i)%uint(len(responses))].op
		r := Request{Kind: op.Kind(), Head: Head{CorrID: "7"}, Op: op, ActionCorrID: "8"}
		var res Result
		var err error
		allocated.Within(t, 200*len(text), func() { res, err = DecodeResponse(text, &r) })
		if err != nil {
			return
		}
		again := AppendResponse(nil, &r, &res)
		back, err := DecodeResponse(again, &r)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if twice := AppendResponse(nil, &r, &back); !bytes.Equal(again, twice) {
			t.Fatalf("got %s, want %s", twice, again)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(AppendMessage(nil, &Message{Execute: &TaskRef{"a", 1}}, "u"))
	f.Add(AppendMessage(nil, &Message{Unblock: &promiseB}, ""))
	f.Fuzz(func(t *testing.T, text []byte) {
		var message Message
		var err error
		allocated.Within(t, 200*len(text), func() { message, err = DecodeMessage(text) })
		if err != nil {
			return
		}
		again := AppendMessage(nil, &message, "")
		back, err := DecodeMessage(again)
		if err != nil || !bytes.Equal(again, AppendMessage(nil, &back, "")) {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

// FuzzAppendString compares with encoding/json on all strings, text or not.
func FuzzAppendString(f *testing.F) {
	f.Add(text)
	f.Add("\xff\xc0\xaf\xed\xa0\x80\u2028</script>")
	f.Fuzz(func(t *testing.T, text string) {
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		got := appendString(nil, text)
		var a, b string
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if err := json.Unmarshal(want, &b); err != nil || a != b {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
