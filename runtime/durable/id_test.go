package durable_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// parameterText is the parameter of a call in the form of the SDKs.
func parameterText(function string) protocol.Value {
	data := base64.StdEncoding.EncodeToString([]byte(`{"func":"` + function + `","args":[1],"version":1}`))
	return protocol.Value{Data: &data}
}

// makers make promises with the ids that a call of the function "f" has. want is a part of the
// error of the call. If it is "", the promise is that of the call, or the call has its own promise.
var makers = map[string]struct {
	id   string // of the call; "": job-1
	make protocol.PromiseCreate
	want string
	own  bool // the call has another promise
}{
	"by hand":          {want: "a program that calls no function"},
	"of other text":    {make: protocol.PromiseCreate{Param: textValue("not a call")}, want: "a program that calls no function"},
	"another function": {make: protocol.PromiseCreate{Param: parameterText("g")}, want: `a call of "g" with the id "job-1"`},
	"another group": {
		make: protocol.PromiseCreate{Param: parameterText("f"), Tags: map[string]string{protocol.TagTarget: "poll://any@other"}},
		want: `a call of "f" with the id "job-1" for poll://any@other`,
	},
	"a record": {
		make: protocol.PromiseCreate{Tags: map[string]string{"topogen:step": "charge", protocol.TagParent: "job"}},
		own:  true,
	},
	"a child": {
		make: protocol.PromiseCreate{Param: parameterText("f"), Tags: map[string]string{"topogen:step": "durable.Call f", protocol.TagParent: "job", protocol.TagBranch: "job-1"}},
		own:  true,
	},
	"a child of an SDK": {
		id:   "job:1",
		make: protocol.PromiseCreate{ID: "job:1", Param: parameterText("f"), Tags: map[string]string{protocol.TagParent: "job"}},
		own:  true,
	},
	"the id of an earlier version": {
		id:   "job:#1",
		make: protocol.PromiseCreate{ID: "job:##1", Param: parameterText("f")},
		want: `a call of "f" with the id "job:##1"`,
	},

	"a call of an SDK": {make: protocol.PromiseCreate{Param: parameterText("f"), Tags: map[string]string{
		protocol.TagParent: "job-1", protocol.TagOrigin: "job-1", protocol.TagTarget: "poll://any@test/process"}}},
	"a call of another execution": {make: protocol.PromiseCreate{Param: parameterText("f"), Tags: map[string]string{
		"topogen:step": "durable.Start f", protocol.TagParent: "job", protocol.TagBranch: "job-1"}}},
	"an earlier version":       {id: "job:#1", make: protocol.PromiseCreate{ID: "job:#1", Param: parameterText("f")}},
	"a program with the rule":  {id: "job:#1", make: protocol.PromiseCreate{ID: "job:##1", Param: parameterText("f"), Tags: map[string]string{"topogen:id": "job:#1"}}},
	"a function with a URL":    {make: protocol.PromiseCreate{Param: parameterText("f"), Tags: map[string]string{protocol.TagTarget: "https://example.com"}}},
	"a record with the old id": {id: "job:#1", make: protocol.PromiseCreate{ID: "job:#1", Tags: map[string]string{"topogen:step": "charge", protocol.TagParent: "job"}}, own: true},
	"an id without a parent":   {id: ".5", make: protocol.PromiseCreate{ID: ".5", Param: parameterText("f")}},
	"a call that an SDK names": {id: "job:1x", make: protocol.PromiseCreate{ID: "job:1x", Param: parameterText("f"), Tags: map[string]string{protocol.TagParent: "job"}}},
}

func textValue(text string) protocol.Value {
	data := base64.StdEncoding.EncodeToString([]byte(text))
	return protocol.Value{Data: &data}
}

// TestTakenIDs calls a function with an id whose promise exists. The promise has a result, which
// is returned only if it is that of the call.
func TestTakenIDs(t *testing.T) {
	for name, maker := range makers {
		call := durable.Call{ID: maker.id, Func: "f", Arg: 1}
		if call.ID == "" {
			call.ID = "job-1"
		}
		create := maker.make
		if create.ID == "" {
			create.ID = call.ID
		}
		create.TimeoutAt = 1 << 50
		check := func(t *testing.T, result int, err error) {
			t.Helper()
			switch {
			case maker.want == "" && !maker.own:
				if err != nil || result != 7 {
					t.Errorf("the result is %d, %v, want that of the promise", result, err)
				}
			case maker.want == "":
				if err != nil || result != 5 {
					t.Errorf("the result is %d, %v, want that of the function", result, err)
				}
			case err == nil || !strings.Contains(err.Error(), maker.want) || !strings.Contains(err.Error(), `not by a call of "f" with the id "`+call.ID+`"`):
				t.Errorf("the result is %d, %v, want an error with %q", result, err, maker.want)
			}
		}
		made := func(t *testing.T, functions ...durable.Function) *world {
			w := newWorld(t, 1, append(functions, durable.Func("f", func(durable.Context, int) (int, error) { return 5, nil }))...)
			for _, op := range []protocol.Operation{create, protocol.PromiseSettle{ID: create.ID, State: protocol.Resolved, Value: textValue("7")}} {
				if r, err := w.server.Do(t.Context(), op); err != nil || r.Status != protocol.OK {
					t.Fatal(r, err)
				}
			}
			w.start(0, false)
			return w
		}
		t.Run(name+"/outside", func(t *testing.T) {
			w := made(t)
			h, err := durable.Start[int](t.Context(), w.caller, call)
			if maker.want != "" && (!errors.Is(err, durable.ErrTaken) || h.ID() != "") {
				t.Errorf("the error is %v, with the handle %q", err, h.ID())
			}
			result := 0
			if err == nil {
				w.run(nil)
				result, _, err = h.Result(t.Context())
			}
			check(t, result, err)
		})
		t.Run(name+"/in a function", func(t *testing.T) {
			w := made(t, durable.Func("caller", func(ctx durable.Context, _ int) (int, error) { return durable.Invoke[int](ctx, nil, call) }))
			w.call("caller", "caller", 1)
			w.run(nil)
			n, settled, err := durable.Get[int](w.caller, "caller").Result(t.Context())
			if !settled {
				t.Error("the caller has not ended")
			}
			check(t, n, err)
			w.check()
		})
	}
}

// TestTakenExternal waits for a promise that another program has settled before it was called.
func TestTakenExternal(t *testing.T) {
	w := newWorld(t, 1)
	for _, op := range []protocol.Operation{
		protocol.PromiseCreate{ID: "approval", TimeoutAt: 1 << 50, Tags: map[string]string{protocol.TagScope: "global"}},
		protocol.PromiseSettle{ID: "approval", State: protocol.Resolved, Value: textValue("7")},
	} {
		if r, err := w.server.Do(t.Context(), op); err != nil || r.Status != protocol.OK {
			t.Fatal(r, err)
		}
	}
	n, err := durable.Invoke[int](t.Context(), w.caller, durable.Call{ID: "approval", Func: "approve", External: true})
	if err != nil || n != 7 {
		t.Errorf("the result is %d, %v", n, err)
	}
}

// TestInvalidIDs gives ids that no promise can have.
func TestInvalidIDs(t *testing.T) {
	var in string
	f := durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		_, err := durable.Start[int](ctx, nil, durable.Call{ID: in, Func: "g"})
		if !errors.Is(err, durable.ErrInvalidID) {
			return 0, err
		}
		return 1, nil
	})
	for id, want := range map[string]string{
		strings.Repeat("ü", 1001): "must have at most 2000 bytes, got 2002; use a shorter one",
		strings.Repeat(":#", 700): "must have at most 2000 bytes, got 2100; use a shorter one",
		"order \xff":              `must be UTF-8 text; encode other bytes`,
		"order\x00":               "must not contain U+0000",
	} {
		w := newWorld(t, 1, f)
		_, err := durable.Start[int](t.Context(), w.caller, durable.Call{ID: id, Func: "f"})
		if !errors.Is(err, durable.ErrInvalidID) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", id, err, want)
		}
		in = id
		w.start(0, false)
		w.call("caller", "f", 1)
		w.run(nil)
		if got := w.result("caller"); got != "1" {
			t.Errorf("%.20q in a function: %s", id, got)
		}
	}
	id := strings.Repeat("ü", 1000)
	w := newWorld(t, 1, durable.Func("f", func(ctx durable.Context, _ int) (int, error) {
		return durable.Step(ctx, "step", func(context.Context) (int, error) { return 3, nil })
	}))
	w.start(0, false)
	w.call(id, "f", 1)
	w.run(nil)
	if got := w.result(id); got != "3" {
		t.Errorf("the longest id: %s", got)
	}
}

// TestDeepCalls lets a function call itself until the ids of its children are too long. The
// last one calls with an id of its own.
func TestDeepCalls(t *testing.T) {
	depth := 0
	f := durable.Func("f", func(ctx durable.Context, n int) (int, error) {
		call := durable.Call{Func: "f", Arg: n + 1, Timeout: time.Hour}
		h, err := durable.Start[int](ctx, nil, call)
		if errors.Is(err, durable.ErrInvalidID) && strings.Contains(err.Error(), "give the call an id of its own") {
			depth = n
			call.ID, call.Func = "deep", "g"
			h, err = durable.Start[int](ctx, nil, call)
		}
		if err != nil {
			return 0, err
		}
		return h.Wait(ctx)
	})
	g := durable.Func("g", func(durable.Context, int) (int, error) { return 9, nil })
	w := newWorld(t, 1, f, g)
	w.start(0, false)
	id := strings.Repeat("f", 1900)
	w.call(id, "f", 1)
	w.run(nil)
	if got := w.result(id); got != "9" || depth < 40 {
		t.Errorf("the result at depth %d is %s", depth, got)
	}
	w.check()
}
