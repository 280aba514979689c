package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestHalted: a caller learns that the execution was halted: at once if its own worker halts
// it, and within two minutes otherwise. After the execution was continued, its result is there.
func TestHalted(t *testing.T) {
	live(t, func(l *lab) {
		var run, diverges = new(atomic.Int32), new(atomic.Bool)
		diverges.Store(true)
		f := durable.Func("f", func(ctx durable.Context, _ int) (string, error) {
			name := "reserve"
			if run.Add(1) > 1 && diverges.Load() {
				name = "charge"
			}
			if _, err := durable.Step(ctx, name, func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			return "done", durable.Sleep(ctx, time.Hour)
		})
		l.log = slog.New(slog.DiscardHandler) // the execution is halted
		w := l.worker(nil, f)
		other := l.worker(nil) // runs no functions
		type answer struct {
			err   error
			after time.Duration
		}
		began := time.Now()
		wait := func(w *durable.Worker) answer {
			_, err := durable.Get[string](w, "order-1").Wait(l.ctx)
			return answer{err, time.Since(began)}
		}
		if _, err := durable.Start[string](l.ctx, w, durable.Call{ID: "order-1", Func: "f"}); err != nil {
			t.Fatal(err)
		}
		elsewhere := make(chan answer, 1)
		go func() { elsewhere <- wait(other) }()
		for name, got := range map[string]answer{"here": wait(w), "elsewhere": <-elsewhere} {
			if !errors.Is(got.err, durable.ErrHalted) || !strings.Contains(fmt.Sprint(got.err), "order-1; topoctl durable tasks continue") {
				t.Errorf("%s: the error is %v", name, got.err)
			}
			if limit := map[string]time.Duration{"here": time.Second, "elsewhere": 2 * time.Minute}[name]; got.after > time.Hour+limit {
				t.Errorf("%s: the caller learned it after %v", name, got.after)
			}
		}
		diverges.Store(false)
		if r, err := l.engine.Do(l.ctx, protocol.TaskContinue{ID: "order-1"}); err != nil || r.Status != protocol.OK {
			t.Fatalf("continue: %+v, %v", r, err)
		}
		if got, err := durable.Get[string](other, "order-1").Wait(l.ctx); got != "done" || err != nil {
			t.Errorf("after it was continued, the result is %q, %v", got, err)
		}
	})
}
