package core_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestSearchFindsAll compares searches with a loop over all records.
func TestSearchFindsAll(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(r *rapid.T) {
		g := &generator{T: r, world: newWorld(t, core.Config{})}
		g.at(1000)
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			g.now.Wall += int64(rapid.IntRange(0, 2000).Draw(r, "advance"))
			if rapid.IntRange(0, 2).Draw(r, "settle") == 0 {
				g.do(g.settle(g.id()))
			} else {
				g.do(g.create(g.id()))
			}
		}
		filter := protocol.PromiseSearch{
			State: rapid.SampledFrom([]protocol.PromiseState{"", protocol.Pending, protocol.Resolved, protocol.Rejected, protocol.RejectedTimeout}).Draw(r, "state"),
			Tags:  map[string]string{}, Limit: rapid.IntRange(1, 4).Draw(r, "limit"),
		}
		for _, key := range []string{protocol.TagBranch, protocol.TagParent, protocol.TagOrigin, "color", protocol.TagExternal} {
			if rapid.IntRange(0, 3).Draw(r, key) == 0 {
				filter.Tags[key] = rapid.SampledFrom([]string{"r", "q", "r:1", "red", "true", ""}).Draw(r, "value")
			}
		}
		if got, want := g.found(filter), g.wanted(filter); !slices.Equal(got, want) {
			r.Fatalf("%+v finds %q, want %q", filter, got, want)
		}
		g.searchTasks()
	})
}

// found returns the ids of all pages of a search.
func (g *generator) found(op protocol.PromiseSearch) []string {
	var ids []string
	for pages := 0; ; pages++ {
		r, _ := g.do(op)
		for _, p := range r.Promises {
			ids = append(ids, p.ID)
		}
		if op.Cursor = r.Cursor; r.Cursor == "" {
			return ids
		}
		if len(r.Promises) != op.Limit || pages > 20 {
			g.Fatalf("page %d has %d promises and a cursor", pages, len(r.Promises))
		}
	}
}

func (g *generator) wanted(op protocol.PromiseSearch) []string {
	var ids []string
	for id, p := range g.view().promises {
		if p.State == protocol.Pending && !p.live(g.now) {
			p.State = p.outcome()
		}
		fits := op.State == "" || op.State == p.State
		for key, v := range op.Tags {
			tag, ok := p.Tags[key]
			fits = fits && ok && tag == v
		}
		if fits {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (g *generator) searchTasks() {
	v := g.view()
	for _, state := range []protocol.TaskState{"", protocol.TaskPending, protocol.TaskFulfilled} {
		var want []string
		for _, id := range slices.Sorted(maps.Keys(v.tasks)) {
			is := v.tasks[id].State
			if !v.promises[id].live(g.now) {
				is = protocol.TaskFulfilled
			}
			if state == "" || state == is {
				want = append(want, id)
			}
		}
		r, _ := g.do(protocol.TaskSearch{State: state})
		var got []string
		for _, t := range r.Tasks {
			got = append(got, t.ID)
		}
		if !slices.Equal(got, want) {
			g.Fatalf("tasks in state %q: %q, want %q", state, got, want)
		}
	}
}

// TestSearchLooksAtFewRecords checks that a page without an index ends, and that its cursor
// leads to the results.
func TestSearchLooksAtFewRecords(t *testing.T) {
	w := defaults(t).at(1000)
	const promises = 25_000
	for i := range promises {
		w.c.Step(w.kv, protocol.PromiseCreate{ID: fmt.Sprintf("p%05d", i), TimeoutAt: 9000}, w.now)
	}
	w.c.Step(w.kv, protocol.PromiseCreate{ID: "q", TimeoutAt: 9000, Tags: external()}, w.now)
	op := protocol.PromiseSearch{Tags: external()}
	for page := 0; ; page++ {
		r, _ := w.c.Step(w.kv, op, w.now)
		if r.Cursor == "" {
			if page != 2 || len(r.Promises) != 1 {
				t.Fatalf("page %d is the last one and has %d promises", page, len(r.Promises))
			}
			return
		}
		op.Cursor = r.Cursor
	}
}

// TestSearchPageIsBounded checks that large records make short pages.
func TestSearchPageIsBounded(t *testing.T) {
	w := defaults(t).at(1000)
	large := strings.Repeat("x", 3<<20)
	for _, id := range []string{"a", "b", "c"} {
		w.must(protocol.PromiseCreate{ID: id, TimeoutAt: 9000, Param: protocol.Value{Data: &large}, Tags: tags(protocol.TagBranch, "b")})
	}
	op := protocol.PromiseSearch{}
	for _, id := range []string{"a", "b", "c"} {
		r, _ := w.must(op)
		if len(r.Promises) != 1 || r.Promises[0].ID != id || (r.Cursor == "") != (id == "c") {
			t.Fatalf("the page of %s has %d promises and the cursor %q", id, len(r.Promises), r.Cursor)
		}
		op.Cursor = r.Cursor
	}
	r, _ := w.must(protocol.TaskCreate{PID: "w", TTL: 1, Action: protocol.PromiseCreate{ID: "flow", TimeoutAt: 9000, Tags: tags(protocol.TagTarget, worker, protocol.TagBranch, "b")}})
	if len(r.Preload) != 1 {
		t.Errorf("the preload has %d promises", len(r.Preload))
	}
}

// TestSchedulePageIsBounded checks that the tags of schedules count for the size of a page.
func TestSchedulePageIsBounded(t *testing.T) {
	w := defaults(t).at(1000)
	large := targeted()
	for i := range protocol.MaxTags - 2 {
		large[fmt.Sprint(i)] = strings.Repeat("x", protocol.MaxTagValue)
	}
	const schedules = 30 // of 250 KiB
	for i := range schedules {
		w.quick(protocol.ScheduleCreate{ID: fmt.Sprintf("s%02d", i), Cron: "* * * * *", PromiseID: "{{.timestamp}}", PromiseTags: large})
	}
	found, pages := 0, 0
	for op := (protocol.ScheduleSearch{}); pages == 0 || op.Cursor != ""; pages++ {
		r := w.quick(op)
		found, op.Cursor = found+len(r.Schedules), r.Cursor
	}
	if found != schedules || pages != 2 {
		t.Errorf("%d schedules on %d pages", found, pages)
	}
}

// TestLongTags checks tags whose values are shortened in the index.
func TestLongTags(t *testing.T) {
	w := defaults(t).at(1000)
	long := strings.Repeat("v", 200)
	for i, v := range []string{long + "1", long + "2", "short"} {
		w.create(fmt.Sprint("p", i), 9000, tags("key", v))
	}
	for value, want := range map[string][]string{long + "1": {"p0"}, long + "2": {"p1"}, long: nil, "short": {"p2"}, "shor": nil} {
		r, _ := w.must(protocol.PromiseSearch{Tags: tags("key", value)})
		var got []string
		for _, p := range r.Promises {
			got = append(got, p.ID)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q finds %q, want %q", value, got, want)
		}
	}
}
