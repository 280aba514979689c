package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/local"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A world is a server and its workers in virtual time and in one goroutine. A worker can
// be killed at each call of its backend.
type world struct {
	t         testing.TB
	now       time.Time
	server    *local.Server
	random    *rand.Rand
	functions []durable.Function
	workers   []*process
	lease     time.Duration
	records   int // Config.Records of the workers
	log       *slog.Logger
	killed    int // workers
	pids      int
	former    *formerIDs      // of the workers until its end; nil: there are none of an earlier version
	caller    *durable.Worker // starts calls; it runs nothing
}

// A process is a worker with the backend calls that it makes. After it is killed, its calls
// fail, as if the process did not exist.
type process struct {
	*local.Server
	worker *durable.Worker
	calls  int
	// killAt is the call at which the process is killed: before the call takes effect, or
	// after it without seeing the answer.
	killAt int
	before bool
	dead   bool
	former *formerIDs // nil: it is of this version
}

var errKilled = errors.New("the process was killed")

func (p *process) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	results, err := p.DoAll(ctx, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

// DoAll carries out the operations. A process that is killed in a batch is killed between
// two of them, because a server need not commit a batch as a whole.
func (p *process) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	var results []protocol.Result
	for _, op := range ops {
		p.calls++
		if p.dead || p.calls == p.killAt && p.before {
			p.dead = true
			return nil, errKilled
		}
		do := func(op protocol.Operation) (protocol.Result, error) {
			return p.Server.Do(context.WithoutCancel(ctx), op)
		}
		if p.former != nil {
			if p.former.left--; p.former.left < 0 {
				p.dead = true
				return nil, errKilled
			}
			do = p.former.around(do)
		}
		result, err := do(op)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
		if p.calls == p.killAt {
			p.dead = true
			return nil, errKilled
		}
	}
	return results, nil
}

func newWorld(t testing.TB, seed uint64, functions ...durable.Function) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(seed, 0)), functions: functions, lease: 30 * time.Second}
	w.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	if w.server, err = local.New(core.Config{}, func() time.Time { return w.now }); err != nil {
		t.Fatal(err)
	}
	w.caller = w.newWorker(w.server, "caller", nil)
	return w
}

func (w *world) newWorker(b durable.Backend, pid string, functions []durable.Function) *durable.Worker {
	worker, err := durable.NewWorker(durable.Config{
		Backend: b, Group: "test", PID: pid, Functions: functions, Lease: w.lease, Records: w.records, Logger: w.log, Manual: true,
		Now: func() time.Time { return w.now }, Random: w.random.Uint64, Chance: w.random.Float64,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return worker
}

// start adds a worker. It is killed at its call with the number killAt, if that is not 0.
func (w *world) start(killAt int, before bool) *process {
	w.pids++
	p := &process{Server: w.server, killAt: killAt, before: before}
	if w.former != nil && w.former.left > 0 {
		p.former = w.former
	}
	p.worker = w.newWorker(p, fmt.Sprint("worker", w.pids), w.functions)
	w.workers = append(w.workers, p)
	return p
}

// step does the next piece of work of the workers and the server. Killed workers are
// replaced by the function, if it is not nil.
func (w *world) step(replace func()) bool {
	worked := false
	for i := 0; i < len(w.workers); i++ {
		p := w.workers[i]
		worked = p.worker.Step() || worked
		if p.dead {
			w.killed++
			w.workers = append(w.workers[:i:i], w.workers[i+1:]...)
			i--
			w.disconnect(p)
			if replace != nil {
				replace()
			}
			worked = true
		}
	}
	return w.server.Step() || worked
}

// disconnect ends the connection of a killed process by taking its place.
func (w *world) disconnect(p *process) {
	c, err := w.server.Connect("test", p.worker.PID())
	if err != nil {
		w.t.Fatal(err)
	}
	c.Close()
}

// run works until nothing is left to do, and jumps to the next timer when all wait.
func (w *world) run(replace func()) { w.runFor(1<<62, replace) }

// runFor is run for a time at most.
func (w *world) runFor(d time.Duration, replace func()) {
	end := w.now.Add(d)
	for range 1_000_000 {
		if w.step(replace) {
			continue
		}
		next, ok := w.server.Next()
		for _, p := range w.workers {
			if at, has := p.worker.Next(); has && (!ok || at.Before(next)) {
				next, ok = at, true
			}
		}
		if !ok || next.After(end) {
			return
		}
		if next.After(w.now) {
			w.now = next
		}
	}
	w.t.Fatal("the world does not come to rest")
}

// call starts a call.
func (w *world) call(id, function string, arg any) durable.Handle[json.RawMessage] {
	w.t.Helper()
	h, err := durable.Start[json.RawMessage](context.Background(), w.caller, durable.Call{ID: id, Func: function, Arg: arg, Timeout: 1000 * time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// result is the result of a call as text: JSON or an error.
func (w *world) result(id string) string {
	w.t.Helper()
	result, settled, err := durable.Get[json.RawMessage](w.caller, id).Result(context.Background())
	switch {
	case err != nil:
		return "error: " + err.Error()
	case !settled:
		return "pending"
	default:
		return string(result)
	}
}

// promise returns a promise, or nil if it does not exist.
func (w *world) promise(id string) *protocol.Promise {
	result, err := w.server.Do(context.Background(), protocol.PromiseGet{ID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.Promise
}

// check checks the invariants of the store.
func (w *world) check() {
	w.t.Helper()
	w.server.View(func(kv core.KV, now core.Instant) {
		for _, v := range core.Check(kv, now) {
			w.t.Errorf("invariant: %s", v)
		}
	})
}

// logTo is a logger that writes the error of each record to a text.
func logTo(text *string) *slog.Logger { return slog.New(errorHandler{text: text}) }

type errorHandler struct {
	slog.Handler
	text *string
}

func (h errorHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h errorHandler) Handle(_ context.Context, r slog.Record) error {
	*h.text += r.Message + "\n"
	r.Attrs(func(a slog.Attr) bool {
		*h.text += a.Key + ": " + a.Value.String() + "\n"
		return true
	})
	return nil
}

// failing is a logger that fails the test at an error, such as a divergence.
type failing struct {
	slog.Handler
	t testing.TB
}

func (f failing) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (f failing) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	if strings.Contains(text, "does not have") {
		return nil // some groups have a worker without functions
	}
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	f.t.Error(text)
	return nil
}

func goexit() { runtime.Goexit() }
