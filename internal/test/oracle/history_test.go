package oracle

import (
	"fmt"
	"testing"
)

// TestFollow follows histories that a correct server can produce, and some that it cannot.
// Each event follows the one before it. Times are milliseconds.
func TestFollow(t *testing.T) {
	type exchange struct {
		call, end      int64
		kind           string
		data, response object
		status         int
	}
	create := func(call, end, createdAt, timeoutAt int64) exchange {
		p := object{"id": "p", "state": "pending", "param": object{}, "value": object{}, "tags": object{"resonate:target": "poll://any@g"},
			"createdAt": createdAt, "timeoutAt": timeoutAt}
		return exchange{call, end, "promise.create", object{"id": "p", "timeoutAt": timeoutAt, "tags": p["tags"]}, object{"promise": p}, 200}
	}
	get := func(call, end int64, state string) exchange {
		return exchange{call, end, "task.get", object{"id": "p"}, object{"task": object{"id": "p", "state": state, "version": 1, "resumes": []any{}}}, 200}
	}
	acquire := func(call, end, version, ttl int64) exchange {
		task := object{"id": "p", "state": "acquired", "version": version + 1, "resumes": []any{}, "ttl": ttl, "pid": "w"}
		promise := create(0, 0, 100, 500).response["promise"]
		return exchange{call, end, "task.acquire", object{"id": "p", "version": version, "pid": "w", "ttl": ttl}, object{"task": task, "promise": promise, "preload": []any{}}, 200}
	}
	beat := func(call, end int64) exchange {
		return exchange{call, end, "task.heartbeat", object{"pid": "w", "tasks": []any{object{"id": "p", "version": 1}}}, object{}, 200}
	}
	lost := func(e exchange) exchange { e.status = 0; return e }
	release := exchange{110, 111, "task.release", object{"id": "p", "version": 1}, object{}, 200}
	for _, c := range []struct {
		name   string
		events []exchange
		legal  bool
	}{
		{"created during the call", []exchange{create(100, 102, 101, 500)}, true},
		{"created before the call", []exchange{create(100, 102, 99, 500)}, false},
		{"created after the deadline", []exchange{create(100, 102, 100, 100)}, false},
		{"created after the response", []exchange{create(100, 102, 103, 500)}, false},
		{"acquired twice", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), acquire(102, 102, 0, 60)}, false},
		{"acquired, released and acquired", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), release, acquire(112, 112, 1, 60)}, true},
		{"acquired, lost and acquired", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), acquire(170, 171, 1, 60)}, true},
		{"lost too early", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), acquire(150, 151, 1, 60)}, false},
		{"pending after the lease", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), get(161, 161, "pending")}, true},
		{"pending after a heartbeat", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), beat(150, 150), get(170, 170, "pending")}, false},
		{"fulfilled at the deadline", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), get(499, 500, "fulfilled")}, true},
		{"pending after the deadline", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), get(500, 501, "pending")}, false},
		{"dead and alive again", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), get(499, 501, "fulfilled"), get(499, 501, "pending")}, false},
		{"released without a response", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), lost(release), acquire(112, 112, 1, 60)}, true},
		{"not released", []exchange{create(100, 100, 100, 500), acquire(101, 101, 0, 60), lost(release), beat(112, 112), get(140, 140, "pending")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events, known []Event
			for i, e := range c.events {
				q := encode(object{"kind": e.kind, "head": object{"corrId": fmt.Sprint(i), "version": version}, "data": e.data})
				events = append(events, NewEvent(q, encode(response(e.kind, fmt.Sprint(i), answer{e.status, e.response})), e.call, e.end))
				if e.status != 0 {
					known = append(known, events[i])
				}
			}
			states := []*Server{New(Config{RetryTimeout: 1 << 40})}
			for i, e := range events {
				if c.events[i].status == 0 {
					e = NewUnknown(e.Request, e.Call, known)
				}
				var next []*Server
				for _, s := range states {
					next = append(next, s.Follow(e)...)
				}
				if states = next; len(states) == 0 && i < len(events)-1 {
					t.Fatalf("event %d must be legal", i)
				}
			}
			if legal := len(states) > 0; legal != c.legal {
				t.Errorf("legal: got %v, want %v", legal, c.legal)
			}
		})
	}
}
