package durabletests_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/durablefaults"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

func newFaults(t *testing.T, opts ...pool.Option) *durablefaults.Topology {
	t.Helper()
	topology, err := durablefaults.New(durablefaults.Processors{}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// TestDurableFaultsRestarts lets instances fail while executions wait for them, run and sleep. The new
// instances continue the executions.
func TestDurableFaultsRestarts(t *testing.T) {
	first, end := speed.Seeds(t, 10, 50, 10_000)
	for seed := first; seed < end; seed++ {
		before := durablefaults.Made.Load()
		topology := newFaults(t)
		steps := topology.Stepper(seed)
		var handles []durable.Handle[durablefaults.Done]
		for i := range 8 {
			name := string(rune('a' + i))
			h, err := topology.Api().StartJob(t.Context(), durablefaults.Job{Name: name, Sleep: time.Duration(i%3) * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
			if err := topology.Api().SendPoison(t.Context(), durablefaults.Poison{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		topology.Api().Close()
		if err := steps.Run(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, speed.Repeat(t, seed))
		}
		for i, h := range handles {
			if done, settled, err := h.Result(t.Context()); !settled || err != nil || done.Instance <= before {
				t.Errorf("seed %d: job %d: %v %v %v", seed, i, done, settled, err)
			}
		}
		if durablefaults.Made.Load() != before+2+8 {
			t.Errorf("seed %d: %d instances were made", seed, durablefaults.Made.Load()-before)
		}
		if t.Failed() {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
}

// TestDurableFaultsHangs lets an instance hang in another handler while an execution waits for it.
func TestDurableFaultsHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := make(chan struct{})
		durablefaults.Release.Store(&hanging)
		topology := newFaults(t, pool.DurableStore(t.TempDir()))
		result := make(chan error, 1)
		go func() { result <- topology.Run(t.Context()) }()
		for range 3 {
			if err := topology.Api().SendPoison(t.Context(), durablefaults.Poison{Name: "a", Hangs: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := topology.Api().AskJob(t.Context(), durablefaults.Job{Name: "a"}); err != nil {
				t.Errorf("a job behind a call that hangs: %v", err)
			}
		}
		topology.Api().Close()
		close(hanging)
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// TestDurableFaultsGivesUp gives up an instance while an execution waits for it. A caller that waits
// gets an error, Run returns, and the next process continues the execution.
func TestDurableFaultsGivesUp(t *testing.T) {
	const restarts = 100 // in the topology file
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newFaults(t, pool.DurableStore(dir))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- first.Run(ctx) }()
		for range restarts + 1 {
			if err := first.Api().SendPoison(t.Context(), durablefaults.Poison{Name: "a"}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := first.Api().StartJob(t.Context(), durablefaults.Job{Name: "a", Sleep: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(ctx); !errors.Is(err, topo.ErrFailed) {
			t.Errorf("a caller that waits gets %v", err)
		}
		first.Api().Close()
		if err := <-result; !errors.Is(err, pool.ErrGaveUp) || ctx.Err() != nil {
			t.Errorf("Run returns %v, and its context has the error %v", err, ctx.Err())
		}
		second := newFaults(t, pool.DurableStore(dir))
		go func() { result <- second.Run(t.Context()) }()
		next, err := second.Api().FindJob(t.Context(), h.ID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := next.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		second.Api().Close()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// TestDurableFaultsMethodsPanic sends messages whose key or limit panics. Their promises are rejected, and
// the process continues.
func TestDurableFaultsMethodsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topology := newFaults(t, pool.DurableStore(t.TempDir()))
		result := make(chan error, 1)
		go func() { result <- topology.Run(t.Context()) }()
		for method, fails := range map[string]bool{"Account": true, "Group": false, "": false} {
			_, err := topology.Api().AskBroken(t.Context(), durablefaults.Broken{Method: method})
			if fails != (err != nil && strings.Contains(err.Error(), "no "+method)) {
				t.Errorf("a message whose method %q panics: %v", method, err)
			}
		}
		topology.Api().Close()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// patient is a store that rejects a promise when its dead letter was handled.
type patient struct{ protocol.Backend }

func (p patient) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	if f, ok := op.(protocol.TaskFulfill); ok && f.Action.State == protocol.Rejected {
		select {
		case <-durablefaults.Buried:
		case <-ctx.Done():
			return protocol.Result{}, ctx.Err()
		}
	}
	return p.Backend.Do(ctx, op)
}

// TestDurableFaultsDeadLetterComesFirst handles a dead letter before its promise is rejected: after that,
// no process would send the letter again.
func TestDurableFaultsDeadLetterComesFirst(t *testing.T) {
	e, err := engine.Open(engine.Config{Store: store.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Listen(server.Config{Backend: patient{e}, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	topology := newFaults(t, pool.DurableStore(s.URL()))
	go func() { result <- topology.Run(ctx) }()
	limit, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	h, err := topology.Api().StartDoom(limit, durablefaults.Doom{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Wait(limit); err == nil || err.Error() != "doomed" {
		t.Errorf("the result is %v", err)
	}
	cancel()
	if err := errors.Join(<-result, s.Close(t.Context()), e.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// TestDurableFaultsUndecodable has promises that another program made, and whose messages do not fit their edges. They are
// rejected without a call of a handler and without a dead letter, and the topology continues.
func TestDurableFaultsUndecodable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		open := func() *engine.Engine {
			s, err := store.Open(dir, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			e, err := engine.Open(engine.Config{Store: s})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		wrong := map[string]string{
			"faults:api.worker.Job:type":  `{"func":"api.worker.Job","args":[{"Name":5}],"version":1}`,
			"faults:api.worker.Job:text":  `{"func":"api.worker.Job","args":[`,
			"faults:api.doomed.Doom:type": `{"func":"api.doomed.Doom","args":[5],"version":1}`,
		}
		e := open()
		for id, call := range wrong {
			data := base64.StdEncoding.EncodeToString([]byte(call))
			create := protocol.PromiseCreate{ID: id, TimeoutAt: time.Now().Add(time.Hour).UnixMilli(), Param: protocol.Value{Data: &data}, Tags: map[string]string{protocol.TagTarget: "poll://any@faults"}}
			if r, err := e.Do(t.Context(), create); err != nil || r.Status != protocol.OK {
				t.Fatal(r, err)
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		topology := newFaults(t, pool.DurableStore(dir))
		result := make(chan error, 1)
		go func() { result <- topology.Run(t.Context()) }()
		h, err := topology.Api().FindJob(t.Context(), "faults:api.worker.Job:type")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "the argument of the call does not fit: json: cannot unmarshal number into Go struct field Job.Name of type string") {
			t.Errorf("the caller gets %v", err)
		}
		if _, err := topology.Api().AskJob(t.Context(), durablefaults.Job{Name: "right"}); err != nil {
			t.Error(err)
		}
		topology.Api().Close()
		if err := <-result; err != nil {
			t.Error(err)
		}
		e = open()
		for id := range wrong {
			if r, err := e.Do(t.Context(), protocol.PromiseGet{ID: id}); err != nil || r.Promise == nil || r.Promise.State != protocol.Rejected {
				t.Errorf("%s: %+v, %v", id, r.Promise, err)
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case <-durablefaults.Buried:
			t.Error("a message that cannot be decoded became a dead letter")
		default:
		}
	})
}

// TestDurableFaultsFails ends Run with the error of another handler. The executions stay in the store.
func TestDurableFaultsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newFaults(t, pool.DurableStore(dir))
		if err := first.Api().SendTask(t.Context(), durablefaults.Task{}); err != nil {
			t.Fatal(err)
		}
		if err := first.Api().SendPoisoning(t.Context(), durablefaults.Poisoning{}); err != nil {
			t.Fatal(err)
		}
		var failure *pool.HandlerError
		if err := first.Run(t.Context()); !errors.As(err, &failure) {
			t.Errorf("Run returns %v", err)
		}
		second := newFaults(t, pool.DurableStore(dir))
		second.Api().Close()
		if err := second.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestDurableFaultsStepIgnoresContext stops a topology while a step waits for something else. The
// worker gives the step up after three quarters of the drain timeout, and logs it.
func TestDurableFaultsStepIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		hanging := make(chan struct{})
		durablefaults.Release.Store(&hanging)
		topology := newFaults(t, pool.DurableStore(t.TempDir()), pool.DrainTimeout(40*time.Millisecond), pool.Logger(slog.New(slog.NewJSONHandler(&log, nil))))
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- topology.Run(ctx) }()
		if err := topology.Api().SendTask(t.Context(), durablefaults.Task{Stay: true}); err != nil {
			t.Fatal(err)
		}
		<-durablefaults.Entered
		due := time.Now().Add(30 * time.Millisecond).Format(time.RFC3339Nano)
		cancel()
		if err := <-result; !errors.Is(err, pool.ErrDrainTimeout) {
			t.Errorf("Run returns %v", err)
		}
		if want := `{"time":"` + due + `","level":"WARN","msg":"topogen: durable functions have not ended in time`; !strings.Contains(log.String(), want) {
			t.Errorf("the log is\n%s, want %s", log.String(), want)
		}
		close(hanging)
	})
}
