package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A script is a random workflow: the handler of the function "script" carries it out.
type script struct {
	Label string // no other script has it. It begins with the id of the execution of the root
	Ops   []op
	// FailUntil is the attempt that succeeds. The attempts before it fail, every other one
	// with a panic.
	FailUntil int
}

type op struct {
	Kind    string
	Seconds int
	Name    string
	Child   script
}

var kinds = []string{"step", "step", "step", "failing step", "retried step", "sleep", "now", "version", "child", "start", "start", "start all", "named", "all", "any", "timeout", "lasting child failure", "promise"}

func randomScript(r *rand.Rand, label string, depth int) script {
	s := script{Label: label, FailUntil: 1}
	if r.IntN(5) == 0 {
		s.FailUntil = 1 + r.IntN(3)
	}
	for i := range r.IntN(7) {
		o := op{Kind: kinds[r.IntN(len(kinds))], Seconds: r.IntN(100) * r.IntN(100), Name: fmt.Sprint("op", i)}
		if strings.Contains(o.Kind, "child") || strings.HasPrefix(o.Kind, "start") || o.Kind == "named" {
			if depth == 0 {
				o.Kind = "step"
			} else {
				o.Child = randomScript(r, label+separators[r.IntN(len(separators))]+fmt.Sprint(100_000+r.IntN(900_000)), depth-1)
			}
		}
		s.Ops = append(s.Ops, o)
	}
	return s
}

// separators are texts between an id and a number that look like those of the ids of records,
// now or before there was a mark.
var separators = []string{".", ":", ":#", ":##", "#", "~", ":#~", ":#1!", "", "/"}

// A runner carries out scripts in a world.
type runner struct {
	t     *testing.T
	w     *world
	delay time.Duration // before the second attempt
	pause func()        // is called in a step, and may let other workers run
	ran   int
	// results are those of the scripts.
	results []string
}

func (r *runner) function() durable.Function {
	f := durable.Func("script", r.run)
	f.Retry = durable.Retry{Attempts: 4, Delay: r.delay, Jitter: 0.5}
	return f
}

// run returns a text that contains everything that the script has seen, except times.
func (r *runner) run(ctx durable.Context, s script) (string, error) {
	var seen strings.Builder
	fmt.Fprintf(&seen, "%q:", s.Label)
	var handles []durable.Handle[string]
	note := func(v any, err error) error {
		if errors.Is(err, durable.ErrMisuse) || errors.Is(err, durable.ErrEnded) {
			r.t.Errorf("%v", err)
		}
		fmt.Fprintf(&seen, "%v/%v;", v, err)
		return nil
	}
	for i, o := range s.Ops {
		if err := r.do(ctx, o, &handles, note); err != nil {
			return "", err
		}
		if ctx.Attempt() < s.FailUntil && i == len(s.Ops)/2 {
			if ctx.Attempt()%2 == 0 {
				panic(fmt.Sprint("attempt ", ctx.Attempt()))
			}
			return "", fmt.Errorf("attempt %d failed", ctx.Attempt())
		}
	}
	for _, h := range handles {
		_ = note(h.Wait(ctx))
	}
	return seen.String(), nil
}

func (r *runner) do(ctx durable.Context, o op, handles *[]durable.Handle[string], note func(any, error) error) error {
	d := time.Duration(o.Seconds) * time.Second
	call := durable.Call{Func: "script", Arg: o.Child, Timeout: 500 * time.Hour}
	failing := func(context.Context) (int, error) { r.step(ctx, o.Name); return 0, fmt.Errorf("%s failed", o.Name) }
	switch o.Kind {
	case "step":
		return note(durable.Step(ctx, o.Name, func(context.Context) (string, error) { r.step(ctx, o.Name); return o.Name, nil }))
	case "failing step":
		return note(durable.Step(ctx, o.Name, failing))
	case "retried step":
		return note(durable.Step(ctx, o.Name, failing, durable.Retry{Attempts: 3, Delay: d}))
	case "sleep":
		return note(nil, durable.Sleep(ctx, d))
	case "now":
		durable.Now(ctx)
	case "version":
		return note(ctx.Version(o.Name, 1, 3), nil)
	case "start":
		h, err := durable.Start[string](ctx, nil, call)
		*handles = append(*handles, h)
		return note(h.ID() != "", err)
	case "named":
		call.ID = o.Child.Label
		h, err := durable.Start[string](ctx, nil, call)
		*handles = append(*handles, h)
		return note(h.ID() == durable.PromiseID(call.ID), err)
	case "start all":
		hs, err := durable.StartAll[string](ctx, nil, call, call)
		*handles = append(*handles, hs...)
		return note(len(hs), err)
	case "child":
		return note(durable.Invoke[string](ctx, nil, call))
	case "lasting child failure":
		call.Func = "failing"
		return note(durable.Invoke[string](ctx, nil, call))
	case "all":
		return note(durable.All(ctx, *handles...))
	case "any":
		var awaited []durable.Awaitable
		for _, h := range *handles {
			awaited = append(awaited, h)
		}
		if len(awaited) > 0 {
			i, err := durable.Any(ctx, awaited...) // which one depends on time
			if _, waitErr := (*handles)[i].Wait(ctx); err != nil {
				return note(nil, errors.Join(err, waitErr))
			}
		}
	case "timeout":
		timer, err := durable.After(ctx, d)
		if err != nil {
			return note(nil, err)
		}
		never, err := durable.Start[int](ctx, nil, durable.Call{Func: o.Name, External: true, Timeout: 500 * time.Hour})
		if err != nil {
			return note(nil, err)
		}
		return note(durable.Any(ctx, never, timer))
	case "promise":
		h, err := durable.Start[int](ctx, nil, durable.Call{Func: o.Name, External: true, Timeout: d + time.Second})
		if err != nil {
			return note(nil, err)
		}
		return note(h.Wait(ctx)) // it times out
	}
	return nil
}

// step is the effect of a step. It must not happen if the result is on disk.
func (r *runner) step(ctx durable.Context, name string) {
	if r.w == nil {
		return // workers with goroutines
	}
	r.ran++
	if ctx.Attempt() == 1 {
		search := protocol.PromiseSearch{Tags: map[string]string{protocol.TagParent: ctx.ID(), "topogen:step": name}}
		result, err := r.w.server.Do(context.Background(), search)
		if err != nil || len(result.Promises) > 0 && result.Promises[0].State != protocol.Pending {
			r.t.Errorf("step %s of %s runs, although its result is on disk: %v %v", name, ctx.ID(), result.Promises, err)
		}
	}
	if r.pause != nil {
		r.pause()
	}
}

// TestRandomWorkflowsLive runs random workflows with an engine and workers that have
// goroutines. The connections of workers to the engine break at random and stay broken.
func TestRandomWorkflowsLive(t *testing.T) {
	first, end := speed.Seeds(t, 1, 5, 500)
	killed := 0
	for seed := first; seed < end; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			s := script{FailUntil: 1}
			for len(s.Ops) < 3 {
				s = randomScript(random, "test:root", 2)
			}
			want := runScript(t, s, seed, nil, nil).results[0]
			live(t, func(l *lab) {
				r := &runner{t: t, delay: time.Duration(seed%2) * time.Minute}
				caller := l.worker(nil)
				start := func() {
					left := 5 + random.IntN(40)
					if len(l.workers) > 20 {
						left = 1 << 30
					}
					l.worker(&mortal{Backend: l.engine, left: left}, r.functions()...)
				}
				start()
				start()
				h, err := durable.Start[json.RawMessage](l.ctx, caller, durable.Call{ID: "test:root", Func: "script", Arg: s, Timeout: 1000 * time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				for {
					ctx, cancel := context.WithTimeout(l.ctx, 20*time.Minute)
					got, err := h.Wait(ctx)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						if string(got) != want || err != nil {
							t.Errorf("with kills the result is\n%s, %v\nand without\n%s", got, err, want)
						}
						break
					}
					start()
					killed++
				}
				for _, w := range l.workers { // their backend does not answer
					ended, cancel := context.WithCancel(l.ctx)
					cancel()
					_ = w.Close(ended)
				}
			})
		})
		if t.Failed() {
			t.Error(speed.Repeat(t, seed))
			break
		}
	}
	t.Logf("%d workers killed", killed)
}

// A mortal backend does not answer any more after some operations, with its connection.
type mortal struct {
	protocol.Backend
	mu         sync.Mutex
	left       int
	connection protocol.Connection
}

func (m *mortal) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	m.mu.Lock()
	m.left--
	dead := m.left < 0
	if dead && m.connection != nil {
		m.connection.Close()
		m.connection = nil
	}
	m.mu.Unlock()
	if dead {
		return protocol.Result{}, errKilled
	}
	return m.Backend.Do(ctx, op)
}

func (m *mortal) Connect(group, pid string) (protocol.Connection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left < 0 {
		return nil, errKilled
	}
	c, err := m.Backend.Connect(group, pid)
	m.connection = c
	return c, err
}

func (r *runner) functions() []durable.Function {
	return []durable.Function{r.function(), durable.Func("failing", func(ctx durable.Context, _ script) (string, error) {
		if err := durable.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
		return "", &durable.Error{Name: "Always", Message: "it always fails"}
	})}
}

// TestRandomWorkflows compares random workflows whose workers are killed and paused at
// random with the same workflows without interruption.
func TestRandomWorkflows(t *testing.T) {
	first, end := speed.Seeds(t, 25, 1000, 10_000)
	end = first + speed.Tenth(t, end-first)
	var killed, paused, ran uint64
	for seed := first; seed < end; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := randomScript(random, "test:root", 2)
			want := runScript(t, s, seed, nil, nil).results[0]
			r := runScript(t, s, seed, random, &paused)
			if got := r.results[0]; got != want {
				t.Errorf("with kills the result is\n%s\nand without\n%s", got, want)
			}
			killed, ran = killed+uint64(r.w.killed), ran+uint64(r.ran)
		})
		if t.Failed() {
			t.Error(speed.Repeat(t, seed))
			break
		}
	}
	t.Logf("%d workers killed, %d paused, %d steps", killed, paused, ran)
}

// runScript runs a script. If random is not nil, workers are killed and paused.
func runScript(t *testing.T, s script, seed uint64, random *rand.Rand, paused *uint64) *runner {
	return runScripts(t, []script{s}, seed, random, paused, nil)
}

// runScripts runs scripts at the same time, each with its label as the id of its execution.
// prepare is called with the world before there is a worker, if it is not nil.
func runScripts(t *testing.T, scripts []script, seed uint64, random *rand.Rand, paused *uint64, prepare func(*world)) *runner {
	r := &runner{t: t, delay: time.Duration(seed%3) * time.Minute}
	w := newWorld(t, seed, r.functions()...)
	w.log = slog.New(failing{t: t})
	r.w = w
	if prepare != nil {
		prepare(w)
	}
	kills := 0
	startWorker := func() {
		killAt := 0
		if random != nil && kills < 40 {
			kills++
			killAt = 1 + random.IntN(30)
		}
		w.start(killAt, random != nil && random.IntN(2) == 0)
	}
	workers := 1
	if random != nil {
		workers = 1 + random.IntN(3)
		nested := false
		r.pause = func() {
			if nested || random.IntN(20) > 0 {
				return
			}
			nested = true
			defer func() { nested = false }()
			*paused++
			w.pauseStep(w.lease+time.Second, random.IntN(50), startWorker)
		}
	}
	for range workers {
		startWorker()
	}
	var handles []durable.Handle[json.RawMessage]
	for _, s := range scripts {
		handles = append(handles, w.call(s.Label, "script", s))
	}
	w.run(startWorker)
	w.check()
	for _, h := range handles {
		r.results = append(r.results, w.result(h.ID()))
	}
	return r
}

// pauseStep pauses the worker that runs a step: time passes, and other workers do some of
// their work. Everything is in one goroutine, so the step calls this itself.
func (w *world) pauseStep(d time.Duration, steps int, replace func()) {
	paused := w.workers
	w.workers = nil
	replace()
	w.now = w.now.Add(d)
	for range steps {
		w.step(replace)
	}
	w.workers = append(paused, w.workers...)
}
