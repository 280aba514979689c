package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
	"github.com/topogen/topogen/runtime/durable/store"
)

// TestOverHTTP runs a workflow with children, a sleep and a retried attempt by two workers
// that use a server. One of them loses the answer of each tenth operation.
func TestOverHTTP(t *testing.T) {
	log := slog.New(failing{t: t})
	e, err := engine.Open(engine.Config{Store: store.NewMemory(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Listen(server.Config{Backend: e, Listen: "127.0.0.1:0", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	child := durable.Func("child", func(ctx durable.Context, n int) (int, error) {
		if err := durable.Sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
		return n * n, nil
	})
	var ran atomic.Int32
	parent := durable.Func("parent", func(ctx durable.Context, n int) (int, error) {
		calls := make([]durable.Call, n)
		for i := range calls {
			calls[i] = durable.Call{Func: "child", Arg: i}
		}
		handles, err := durable.StartAll[int](ctx, nil, calls...)
		if err != nil {
			return 0, err
		}
		squares, err := durable.All(ctx, handles...)
		if err != nil {
			return 0, err
		}
		sum, err := durable.Step(ctx, "sum", func(context.Context) (sum int, err error) {
			ran.Add(1)
			for _, s := range squares {
				sum += s
			}
			return sum, nil
		})
		if ctx.Attempt() == 1 {
			return 0, errors.New("no")
		}
		return sum, err
	})
	parent.Retry = durable.Retry{Attempts: 2, Delay: 10 * time.Millisecond}

	var workers []*durable.Worker
	var clients []*client.Client
	served := make(chan error, 2)
	for i := range 2 {
		c, err := client.New(s.URL(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		w, err := durable.NewWorker(durable.Config{Backend: &lossy{Backend: c, every: int32(10 * i)}, Group: "test", Functions: []durable.Function{parent, child}, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
		go func() { served <- w.Serve(t.Context()) }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // longer than all leases and retries
	defer cancel()
	var calls sync.WaitGroup
	for i := range 10 {
		calls.Go(func() {
			got, err := durable.Invoke[int](ctx, workers[i%2], durable.Call{ID: fmt.Sprint("p", i), Func: "parent", Arg: 5})
			if got != 30 || err != nil {
				t.Errorf("the result of parent %d is %d, %v", i, got, err)
			}
		})
	}
	calls.Wait()
	if ran.Load() != 10 {
		t.Errorf("the step ran %d times in 10 executions", ran.Load())
	}
	for i, w := range workers {
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		clients[i].Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Close(t.Context()), e.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// A lossy backend loses some answers: the operation is carried out, and the caller does not
// know.
type lossy struct {
	protocol.Backend
	every, calls int32
}

func (l *lossy) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	result, err := l.Backend.Do(ctx, op)
	if n := atomic.AddInt32(&l.calls, 1); l.every > 0 && n%l.every == 0 {
		return protocol.Result{}, errors.New("the answer is lost")
	}
	return result, err
}
