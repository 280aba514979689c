package oracle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Load is a number of clients that send requests to a server at the same time. Requests
// concern trees of promises: promises of different trees do not concern each other, so the
// history of each tree is checked alone.
type Load struct {
	Clock Clock // of the clients and of the server
	// Send sends a request. An outcome that is not Answered has an error.
	Send    func(ctx context.Context, request []byte) (response []byte, outcome Outcome, err error)
	Clients int
	Trees   int // each client sends requests about one tree after the other
	Each    int // requests of a client for a tree
	// Abandon abandons one in so many requests while the server carries them out. 0: none.
	Abandon int
	// Failures says that the server can fail. A request that was not carried out is followed
	// by another one. A client whose request has no answer goes on with the next tree.
	Failures bool
	// Begin is called before a client sends the first request about a tree. nil: it is not.
	Begin func(client, tree int)

	mu    sync.Mutex
	tasks map[string]lease // as the clients saw them last
}

// An Outcome says what a client knows about a request.
type Outcome int

const (
	Answered   Outcome = iota
	NotCarried         // the server has not carried out the request, and never will
	Unknown
)

// lease is what the clients know about a task.
type lease struct {
	version int64
	state   string
	pid     string
}

// A Clock is the clock of a server and of its clients. It does not follow the time of day,
// which can jump: a client would believe that a response came too early.
type Clock struct{ begin time.Time }

// NewClock returns a clock that begins now.
func NewClock() Clock { return Clock{time.Now()} }

// Wall returns the time of day, as if no clock had jumped since the beginning.
func (c Clock) Wall() time.Time { return c.begin.Add(time.Since(c.begin)).Round(0) }

// Elapsed returns the time since the beginning.
func (c Clock) Elapsed() time.Duration { return time.Since(c.begin) }

// Run runs the clients and returns their history.
func (l *Load) Run(seed uint64) (History, error) {
	l.tasks = map[string]lease{}
	all := make([]History, l.Clients)
	errs := make([]error, l.Clients)
	var wait sync.WaitGroup
	for i := range l.Clients {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			begun := -1 // the tree
			for n := 0; n < l.Trees*l.Each; n++ {
				if l.Begin != nil && n%l.Each == 0 && n/l.Each > begun {
					begun = n / l.Each
					l.Begin(i, begun)
				}
				op, outcome, err := l.step(r, n/l.Each, i)
				if err != nil {
					errs[i] = err
					return
				}
				if outcome != NotCarried {
					all[i] = append(all[i], op)
				}
				if outcome == NotCarried && l.Failures {
					n--
				}
				if outcome == Unknown && l.Failures {
					n = n/l.Each*l.Each + l.Each - 1 // many of them take too long to check
				}
			}
		})
	}
	wait.Wait()
	return slices.Concat(all...), errors.Join(errs...)
}

// step sends a request about a tree. Some requests are abandoned while the server carries
// them out.
func (l *Load) step(r *rand.Rand, tree, client int) (porcupine.Operation, Outcome, error) {
	request := l.request(r, tree, client)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if l.Abandon > 0 && r.IntN(l.Abandon) == 0 {
		go cancel()
	}
	op := porcupine.Operation{ClientId: client, Call: int64(l.Clock.Elapsed())}
	call := l.Clock.Wall().UnixMilli()
	response, outcome, err := l.Send(ctx, request)
	if err != nil && ctx.Err() == nil && !l.Failures {
		return op, outcome, fmt.Errorf("%s: %w", request, err)
	}
	event := NewEvent(request, response, call, l.Clock.Wall().UnixMilli())
	op.Return = int64(l.Clock.Elapsed())
	if outcome == Unknown {
		op.Return = math.MaxInt64
	} else {
		l.learn(request, response)
	}
	op.Input = recorded{tree, event, outcome == Unknown}
	return op, outcome, nil
}

// learn keeps the version and the state of a task after a request about it.
func (l *Load) learn(request, response []byte) {
	var q struct {
		Kind string
		Data struct{ ID string }
	}
	var r struct {
		Head struct{ Status int }
		Data json.RawMessage
	}
	if json.Unmarshal(request, &q) != nil || json.Unmarshal(response, &r) != nil || r.Head.Status != 200 {
		return
	}
	var data struct {
		Task struct {
			ID, State, PID string
			Version        int64
		}
	}
	_ = json.Unmarshal(r.Data, &data)
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.tasks[data.Task.ID]; data.Task.ID != "" && data.Task.Version >= known.version {
		l.tasks[data.Task.ID] = lease{data.Task.Version, data.Task.State, data.Task.PID}
	}
	if state, changed := afterwards[q.Kind]; changed {
		known := l.tasks[q.Data.ID]
		known.state = state
		l.tasks[q.Data.ID] = known
	}
}

// afterwards is the state of a task after a request that has succeeded.
var afterwards = map[string]string{
	"task.release": "pending", "task.continue": "pending", "task.halt": "halted", "task.suspend": "suspended", "task.fulfill": "fulfilled",
}

// useful are the requests that can succeed while a task is in a state.
var useful = map[string][]string{
	"":          {"task.create", "task.create", "promise.create task"},
	"pending":   {"task.acquire", "task.acquire", "task.acquire", "task.create", "task.halt"},
	"acquired":  {"task.suspend", "task.suspend", "task.suspend", "task.suspend", "task.fence", "task.heartbeat", "task.release", "task.fulfill"},
	"suspended": {"promise.settle", "promise.settle", "promise.create", "task.get", "task.acquire", "task.halt"},
	"halted":    {"task.continue", "task.continue", "promise.settle", "task.get"},
	"fulfilled": {"task.get", "promise.get", "task.create", "promise.settle"},
}

var all = []string{
	"promise.create", "promise.create task", "promise.get", "promise.settle", "promise.settle task", "promise.register_callback",
	"task.create", "task.acquire", "task.release", "task.fulfill", "task.suspend", "task.fence", "task.heartbeat", "task.halt",
	"task.continue", "task.get",
}

// request returns a random request about a tree of promises, of which three have tasks.
// Most requests could succeed if the client were alone.
func (l *Load) request(r *rand.Rand, tree, client int) []byte {
	root := "t" + strconv.Itoa(tree)
	tasks := []string{root, root + ":1", root + ":2"}
	others := []string{root + ":3", root + ":4", root + ":5", root + ":6"}
	id, other := tasks[r.IntN(len(tasks))], others[r.IntN(len(others))]
	l.mu.Lock()
	known := l.tasks[id]
	l.mu.Unlock()
	kinds := useful[known.state]
	switch n := r.IntN(10); {
	case n < 1:
		kinds = all
	case n < 3:
		kinds = []string{"promise.create"} // that tasks can await
	}
	if r.IntN(20) == 0 {
		known.version = max(0, known.version-1)
	}
	pid := "w" + strconv.Itoa(client)
	task := object{"id": id, "version": known.version}
	switch kind := kinds[r.IntN(len(kinds))]; kind {
	case "promise.create":
		return requestOf(kind, l.creation(r, other, root, false))
	case "promise.create task":
		return requestOf("promise.create", l.creation(r, id, root, true))
	case "promise.settle":
		return requestOf(kind, randomSettlement(r, other))
	case "promise.settle task":
		return requestOf("promise.settle", randomSettlement(r, id))
	case "promise.get":
		return requestOf(kind, object{"id": []string{id, other}[r.IntN(2)]})
	case "promise.register_callback":
		return requestOf(kind, object{"awaited": other, "awaiter": id})
	case "task.create":
		return requestOf(kind, object{"pid": pid, "ttl": randomTTL(r), "action": actionOf("promise.create", l.creation(r, id, root, true))})
	case "task.acquire":
		task["pid"], task["ttl"] = pid, randomTTL(r)
		return requestOf(kind, task)
	case "task.fulfill":
		task["action"] = actionOf("promise.settle", randomSettlement(r, id))
		return requestOf(kind, task)
	case "task.suspend":
		var actions []object
		for _, i := range r.Perm(len(others))[:1+r.IntN(2)] {
			actions = append(actions, actionOf("promise.register_callback", object{"awaited": others[i], "awaiter": id}))
		}
		task["actions"] = actions
		return requestOf(kind, task)
	case "task.fence":
		task["action"] = actionOf("promise.create", l.creation(r, other, root, false))
		if r.IntN(2) == 0 {
			task["action"] = actionOf("promise.settle", randomSettlement(r, other))
		}
		return requestOf(kind, task)
	case "task.heartbeat":
		return requestOf(kind, object{"pid": holder(known, pid), "tasks": []object{task}})
	case "task.release":
		return requestOf(kind, task)
	default:
		return requestOf(kind, object{"id": id})
	}
}

// holder returns the process that has a task, or another one if none has it.
func holder(known lease, pid string) string { return cmp.Or(known.pid, pid) }

func randomSettlement(r *rand.Rand, id string) object {
	state := []string{"resolved", "rejected", "rejected_canceled"}[r.IntN(3)]
	return object{"id": id, "state": state, "value": object{"data": strconv.Itoa(r.IntN(1e6))}}
}

// creation returns the data of a promise whose deadline is far, or so near that it passes
// during the history.
func (l *Load) creation(r *rand.Rand, id, root string, task bool) object {
	tags := object{"resonate:origin": root, "resonate:branch": root, "resonate:external": "true"}
	if task {
		tags["resonate:target"] = "poll://any@workers"
	}
	deadline := l.Clock.Wall().Add(time.Hour)
	if r.IntN(4) == 0 {
		deadline = l.Clock.Wall().Add(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	return object{"id": id, "timeoutAt": deadline.UnixMilli(), "param": object{}, "tags": tags}
}

// randomTTL returns the length of a lease, which is often so short that it ends during the
// history.
func randomTTL(r *rand.Rand) int64 {
	if r.IntN(3) == 0 {
		return 1 + r.Int64N(10)
	}
	return 60_000
}

func actionOf(kind string, data object) object {
	return object{"kind": kind, "head": object{"corrId": "a", "version": version}, "data": data}
}

func requestOf(kind string, data object) []byte {
	return encode(object{"kind": kind, "head": object{"corrId": "c", "version": version}, "data": data})
}
