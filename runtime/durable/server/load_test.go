package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/topogen/topogen/runtime/durable/core/oracle"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// load is a number of clients that send requests to a server at the same time.
type load struct {
	clock clock
	// send sends a request. Without a response, outcome says whether the server may have
	// carried it out.
	send  func(ctx context.Context, request []byte) (response []byte, outcome outcome, err error)
	trees int // each client sends requests about one tree after the other
	each  int // requests of a client for a tree

	mu    sync.Mutex
	tasks map[string]lease // as the clients saw them last
}

type outcome int

const (
	isAnswered outcome = iota
	isRefused          // the request was not carried out, and never will be
	isUnknown
)

// lease is what the clients know about a task.
type lease struct {
	version int64
	state   string
	pid     string
}

// clock is the clock of the engine and of the clients. The time of day is not used,
// because it can jump: a client would believe that a response came too early.
type clock struct{ begin time.Time }

func (c clock) Wall() time.Time        { return c.begin.Add(time.Since(c.begin)).Round(0) }
func (c clock) Elapsed() time.Duration { return time.Since(c.begin) }

// run returns the history.
func (l *load) run(t *testing.T, clients int, seed uint64) []porcupine.Operation {
	t.Helper()
	l.tasks = map[string]lease{}
	all := make([][]porcupine.Operation, clients)
	errs := make([]error, clients)
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range l.trees * l.each {
				op, outcome, err := l.step(r, n/l.each, i)
				if err != nil {
					errs[i] = err
					return
				}
				if outcome != isRefused {
					all[i] = append(all[i], op)
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(all...)
}

// step sends a request about a tree. Some requests are abandoned while the server carries
// them out.
func (l *load) step(r *rand.Rand, tree, client int) (porcupine.Operation, outcome, error) {
	request := l.request(r, tree, client)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.IntN(64) == 0 {
		go cancel()
	}
	op := porcupine.Operation{ClientId: client, Call: int64(l.clock.Elapsed())}
	call := l.clock.Wall().UnixMilli()
	response, outcome, err := l.send(ctx, request)
	if err != nil && ctx.Err() == nil {
		return op, outcome, fmt.Errorf("%s: %w", request, err)
	}
	event := oracle.NewEvent(request, response, call, l.clock.Wall().UnixMilli())
	op.Return = int64(l.clock.Elapsed())
	if outcome == isUnknown {
		op.Return = math.MaxInt64
	} else {
		l.learn(request, response)
	}
	op.Input = recorded{tree, event, outcome == isUnknown}
	return op, outcome, nil
}

// learn keeps the version and the state of a task after a request about it.
func (l *load) learn(request, response []byte) {
	var q struct {
		Kind string
		Data struct{ ID string }
	}
	var r struct {
		Head struct{ Status int }
		Data json.RawMessage
	}
	if json.Unmarshal(request, &q) != nil || json.Unmarshal(response, &r) != nil || r.Head.Status != protocol.OK {
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
func (l *load) request(r *rand.Rand, tree, client int) []byte {
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
		return encode(kind, l.creation(r, other, root, false))
	case "promise.create task":
		return encode("promise.create", l.creation(r, id, root, true))
	case "promise.settle":
		return encode(kind, settlement(r, other))
	case "promise.settle task":
		return encode("promise.settle", settlement(r, id))
	case "promise.get":
		return encode(kind, object{"id": []string{id, other}[r.IntN(2)]})
	case "promise.register_callback":
		return encode(kind, object{"awaited": other, "awaiter": id})
	case "task.create":
		return encode(kind, object{"pid": pid, "ttl": ttl(r), "action": action("promise.create", l.creation(r, id, root, true))})
	case "task.acquire":
		task["pid"], task["ttl"] = pid, ttl(r)
		return encode(kind, task)
	case "task.fulfill":
		task["action"] = action("promise.settle", settlement(r, id))
		return encode(kind, task)
	case "task.suspend":
		var actions []object
		for _, i := range r.Perm(len(others))[:1+r.IntN(2)] {
			actions = append(actions, action("promise.register_callback", object{"awaited": others[i], "awaiter": id}))
		}
		task["actions"] = actions
		return encode(kind, task)
	case "task.fence":
		task["action"] = action("promise.create", l.creation(r, other, root, false))
		if r.IntN(2) == 0 {
			task["action"] = action("promise.settle", settlement(r, other))
		}
		return encode(kind, task)
	case "task.heartbeat":
		return encode(kind, object{"pid": holder(known, pid), "tasks": []object{task}})
	case "task.release":
		return encode(kind, task)
	default:
		return encode(kind, object{"id": id})
	}
}

// holder returns the process that has a task, or another one if none has it.
func holder(known lease, pid string) string { return cmp.Or(known.pid, pid) }

func settlement(r *rand.Rand, id string) object {
	state := []string{"resolved", "rejected", "rejected_canceled"}[r.IntN(3)]
	return object{"id": id, "state": state, "value": object{"data": strconv.Itoa(r.IntN(1e6))}}
}

// creation returns the data of a promise whose deadline is far, or so near that it passes
// during the history.
func (l *load) creation(r *rand.Rand, id, root string, task bool) object {
	tags := object{protocol.TagOrigin: root, protocol.TagBranch: root, protocol.TagExternal: "true"}
	if task {
		tags[protocol.TagTarget] = "poll://any@workers"
	}
	deadline := l.clock.Wall().Add(time.Hour)
	if r.IntN(4) == 0 {
		deadline = l.clock.Wall().Add(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	return object{"id": id, "timeoutAt": deadline.UnixMilli(), "param": object{}, "tags": tags}
}

// ttl returns the length of a lease, which is often so short that it ends during the
// history.
func ttl(r *rand.Rand) int64 {
	if r.IntN(3) == 0 {
		return 1 + r.Int64N(10)
	}
	return 60_000
}

type object = map[string]any

func action(kind string, data object) object {
	return object{"kind": kind, "head": object{"corrId": "a", "version": protocol.Version}, "data": data}
}

func encode(kind string, data object) []byte {
	text, err := json.Marshal(object{"kind": kind, "head": object{"corrId": "c", "version": protocol.Version}, "data": data})
	if err != nil {
		panic(err)
	}
	return text
}

// inProcess returns a function that carries out requests on an engine.
func inProcess(e *engine.Engine) func(context.Context, []byte) ([]byte, outcome, error) {
	return func(ctx context.Context, request []byte) ([]byte, outcome, error) {
		r, err := protocol.DecodeRequest(request)
		if err != nil {
			return nil, isRefused, err
		}
		result, err := e.Do(ctx, r.Op)
		switch {
		case errors.Is(err, engine.ErrUnknown):
			return nil, isUnknown, err
		case err != nil:
			return nil, isRefused, err
		}
		return protocol.AppendResponse(nil, &r, &result), isAnswered, nil
	}
}

// overHTTP returns a function that sends requests to a server.
func overHTTP(url string) func(context.Context, []byte) ([]byte, outcome, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	return func(ctx context.Context, request []byte) ([]byte, outcome, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
		if err != nil {
			return nil, isRefused, err
		}
		response, err := client.Do(r)
		if err != nil {
			return nil, isUnknown, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, isUnknown, err
		}
		return text, isAnswered, nil
	}
}
