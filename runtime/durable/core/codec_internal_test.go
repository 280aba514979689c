package core

import (
	"reflect"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// records returns one record of each kind with all fields.
func records() [][]byte {
	data, at := "data", int64(7)
	value := protocol.Value{Headers: map[string]string{"h": "1", "i": "2"}, Data: &data}
	p := &promise{
		id: "p", origin: "o", tags: map[string]string{"a": "b", "": ""}, param: value, value: value,
		promiseHead: promiseHead{state: rejected, flags: external | timer, timeoutAt: protocol.MaxTime, createdAt: 1 << 40, settledAt: 1<<40 + 1},
	}
	t := &task{id: "p", state: taskAcquired, resumed: true, version: 3, timeoutAt: 9, due: 8, ttl: 7, address: "poll://any@w", pid: "w1"}
	delayed := &task{id: "p", state: taskPending, delayed: true, timeoutAt: 9, due: 8}
	s := &protocol.Schedule{
		ID: "p", Cron: "* * * * *", PromiseID: "{{.id}}", PromiseTimeout: 5, PromiseParam: value,
		PromiseTags: map[string]string{"x": "y"}, CreatedAt: 1, NextRunAt: 2, LastRunAt: &at,
	}
	return [][]byte{
		appendPromise(nil, p), appendPromise(nil, &promise{id: "p"}), appendTask(nil, t), appendTask(nil, delayed),
		appendTask(nil, &task{id: "p", state: taskFulfilled}), appendSchedule(nil, s), appendSchedule(nil, &protocol.Schedule{ID: "p"}),
	}
}

// decoded reads a record as each kind, writes the result and reads it again.
func decoded(t *testing.T, body []byte) (accepted int) {
	if p, bad := decodePromise("p", body); bad == "" {
		again, bad := decodePromise("p", appendPromise(nil, p))
		if bad != "" || !reflect.DeepEqual(p, again) {
			t.Fatalf("promise %+v becomes %+v, %s", p, again, bad)
		}
		if head, bad := decodeHead(body); bad != "" || head != p.promiseHead {
			t.Fatalf("the head of %+v is %+v, %s", p, head, bad)
		}
		accepted++
	}
	if r, bad := decodeTask("p", body); bad == "" {
		if again, bad := decodeTask("p", appendTask(nil, r)); bad != "" || *again != *r {
			t.Fatalf("task %+v becomes %+v, %s", r, again, bad)
		}
		accepted++
	}
	if s, bad := decodeSchedule("p", body); bad == "" {
		if again, bad := decodeSchedule("p", appendSchedule(nil, s)); bad != "" || !reflect.DeepEqual(s, again) {
			t.Fatalf("schedule %+v becomes %+v, %s", s, again, bad)
		}
		accepted++
	}
	return accepted
}

func TestRecords(t *testing.T) {
	for _, body := range records() {
		if decoded(t, body) == 0 {
			t.Errorf("no decoder accepts the record %q", body)
		}
		for n := range body {
			decoded(t, body[:n])
		}
	}
}

// FuzzDecode decodes arbitrary records. They are refused, or can be written again. Memory
// is at most a multiple of the record.
func FuzzDecode(f *testing.F) {
	for _, body := range records() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		allocated.Within(t, 400*len(body), func() {
			decoded(t, body)
			func() {
				defer func() { _ = recover() }() // a damaged entry is reported by a panic
				readUndelivered(nil, body)
			}()
		})
	})
}
