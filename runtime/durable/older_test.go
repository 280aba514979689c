package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// rollout is a workflow with records of each form. runs counts the runs of its steps.
func rollout(runs map[string]int) []durable.Function {
	step := func(ctx durable.Context, name, m string, options ...durable.StepOption) (string, error) {
		return durable.Step(ctx, name, func(context.Context) (string, error) {
			key := name + " " + m
			if runs[key]++; runs[key] == 1 && (name == "retried" || name == "repeated") {
				return "", errors.New("the first attempt fails")
			}
			return key, nil
		}, options...)
	}
	roll := durable.Func("roll", func(ctx durable.Context, m string) (string, error) {
		if _, err := step(ctx, "first", m); err != nil {
			return "", err
		}
		part, err := durable.Start[string](ctx, nil, durable.Call{Func: "part", Arg: m})
		if err != nil {
			return "", err
		}
		if _, err := step(ctx, "retried", m, durable.Retry{Attempts: 2, Delay: time.Minute}); err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		if _, err := step(ctx, "repeated", m); err != nil {
			return "", err // the second attempt repeats it
		}
		named, err := durable.Start[string](ctx, nil, durable.Call{ID: m + ".90", Func: "part", Arg: m + "/part"})
		if err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		last, err := step(ctx, "last", m)
		if err != nil {
			return "", err
		}
		parts, err := durable.All(ctx, part, named)
		if err != nil {
			return "", err
		}
		return last + ", " + parts[0] + ", " + parts[1], nil
	})
	roll.Retry = durable.Retry{Attempts: 2, Delay: time.Minute}
	part := durable.Func("part", func(ctx durable.Context, m string) (string, error) {
		before, err := step(ctx, "before", m)
		if err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, 3*time.Hour); err != nil {
			return "", err
		}
		after, err := step(ctx, "after", m)
		return before + " and " + after, err
	})
	return []durable.Function{roll, part}
}

// TestStoreWithoutMarks continues the executions of a store that was written before the ids of
// records had a mark. testdata/older.txt has the requests of a worker of that version until it
// died: each execution was in its second attempt, asleep, with two children.
func TestStoreWithoutMarks(t *testing.T) {
	runs := map[string]int{}
	w := newWorld(t, 1, rollout(runs)...)
	w.log = slog.New(failing{t: t})
	w.replay("testdata/older.txt")
	before := w.count()
	ids := []string{"shop:api.rolls.Roll:1.2", "order-17", "shop:api.rolls.Roll:#5"}
	var handles []durable.Handle[json.RawMessage]
	for _, id := range ids {
		handles = append(handles, w.call(id, "roll", id))
	}
	if n := w.count(); n != before {
		t.Errorf("%d executions that had begun were started again", n-before)
	}
	w.start(0, false)
	w.run(nil)
	for i, id := range ids {
		want := fmt.Sprintf("last %[1]s, before %[1]s and after %[1]s, before %[1]s/part and after %[1]s/part", id)
		want = strconv.Quote(want)
		if got := w.result(handles[i].ID()); got != want {
			t.Errorf("the result of %s is %s, want %s", id, got, want)
		}
		for step, want := range map[string]int{"first": 0, "retried": 0, "repeated": 0, "before": 0, "last": 1, "after": 1} {
			if n := runs[step+" "+id]; n != want {
				t.Errorf("step %s of %s ran %d times after the update, want %d", step, id, n, want)
			}
		}
	}
	// The first ones are the ids of a step, a child, a delay, an attempt and a record of the child.
	for _, id := range []string{"1.2.1", "1.2.2", "1.2.3!2", "1.2.~2", "1.2.2.1", "1.2.77", "1"} {
		id = "shop:api.rolls.Roll:" + id
		for range 2 {
			h := w.call(id, "roll", id)
			w.run(nil)
			if got := w.result(h.ID()); !strings.HasPrefix(got, `"last `+id+`, `) {
				t.Errorf("the result of %s is %s", id, got)
			}
		}
		if n := runs["last "+id]; n != 1 {
			t.Errorf("the last step of %s ran %d times", id, n)
		}
	}
	w.check()
}

// replay carries out recorded requests, each at its time.
func (w *world) replay(file string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		at, request, _ := strings.Cut(line, " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		w.now = time.UnixMilli(ms)
		for w.server.Step() { // timers
		}
		r, err := protocol.DecodeRequest([]byte(request))
		if err != nil {
			w.t.Fatal(err)
		}
		result, err := w.server.Do(w.t.Context(), r.Op)
		if err != nil || result.Status != protocol.OK {
			w.t.Fatalf("%s: %v, %v", request, result, err)
		}
	}
}

// count is how many promises there are.
func (w *world) count() (n int) {
	search := protocol.PromiseSearch{Limit: protocol.MaxSearch}
	result, err := w.server.Do(w.t.Context(), search)
	if err != nil || result.Cursor != "" {
		w.t.Fatal(err, result.Cursor)
	}
	return len(result.Promises)
}
