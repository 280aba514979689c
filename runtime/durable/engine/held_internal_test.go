package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestHeld compares held messages with a simple list.
func TestHeld(t *testing.T) {
	speed.Checks(t, 100, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		type message struct {
			to   lineKey
			task protocol.TaskRef
		}
		h := newHeld()
		var list []message
		groups := rapid.SampledFrom([]string{"g", "h"})
		pids := rapid.SampledFrom([]string{"", "p", "q"})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				k := lineKey{groups.Draw(t, "group"), pids.Draw(t, "pid")}
				task := protocol.TaskRef{ID: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")), Version: int64(rapid.IntRange(0, 9).Draw(t, "version"))}
				if !h.add(k, task) {
					t.Fatal("there is room")
				}
				if i := slices.IndexFunc(list, func(m message) bool { return m.task.ID == task.ID }); i >= 0 {
					if list[i].to == k {
						list[i].task = task
						return
					}
					list = slices.Delete(list, i, i+1) // it has another address now
				}
				list = append(list, message{k, task})
			},
			"take": func(t *rapid.T) {
				group, pid := groups.Draw(t, "group"), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pid")
				want := -1
				for _, k := range []lineKey{{group, pid}, {group, ""}} {
					for i, m := range list {
						if want < 0 && m.to == k {
							want = i
						}
					}
				}
				address, task, ok := h.take(group, pid)
				if ok != (want >= 0) {
					t.Fatalf("took %v: %v", task, ok)
				}
				if !ok {
					return
				}
				if m := list[want]; task != m.task || address != m.to.address() {
					t.Fatalf("took %v for %s, want %v", task, address, m)
				}
				list = append(list[:want:want], list[want+1:]...)
			},
			"remove": func(t *rapid.T) {
				id := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"))
				want := slices.IndexFunc(list, func(m message) bool { return m.task.ID == id })
				if got := h.remove(id); got != (want >= 0) {
					t.Fatalf("removed %s: %v", id, got)
				}
				if want >= 0 {
					list = slices.Delete(list, want, want+1)
				}
			},
			"": func(t *rapid.T) {
				if len(h.tasks) != len(list) {
					t.Fatalf("%d messages, want %d", len(h.tasks), len(list))
				}
				for _, m := range list {
					if v, ok := h.version(m.task.ID); !ok || v != m.task.Version {
						t.Fatalf("%v has the version %d, %v", m.task, v, ok)
					}
				}
			},
		})
		if len(list) == 0 && len(h.lines) > 0 {
			t.Fatal("an empty line remains")
		}
	})
}

// TestHeldLimits: a line and all lines together have limits.
func TestHeldLimits(t *testing.T) {
	h := newHeld()
	for i := range heldTotalMax + heldMax {
		k := lineKey{"g", fmt.Sprint(i / (heldMax + 1))}
		want := i%(heldMax+1) < heldMax && len(h.tasks) < heldTotalMax
		if got := h.add(k, protocol.TaskRef{ID: fmt.Sprint(i)}); got != want {
			t.Fatalf("message %d: %v, want %v", i, got, want)
		}
	}
	if len(h.tasks) != heldTotalMax {
		t.Error(len(h.tasks))
	}
	if !h.add(lineKey{"g", "0"}, protocol.TaskRef{ID: "0", Version: 1}) {
		t.Error("a message that is held already needs no room")
	}
}

// TestParse parses addresses.
func TestParse(t *testing.T) {
	for address, want := range map[string]route{
		"poll://any@g":      {routeAny, "g", ""},
		"poll://any@g/p":    {routeAny, "g", "p"},
		"poll://any@g/p/q":  {routeAny, "g", "p/q"},
		"poll://uni@g/p":    {routeUni, "g", "p"},
		"http://host/path":  {kind: routePush},
		"https://host":      {kind: routePush},
		"poll://uni@g":      {},
		"poll://any@":       {},
		"poll://any@g/":     {},
		"poll://any@/p":     {},
		"poll://all@g":      {},
		"poll://g":          {},
		"ftp://host":        {},
		"bash://rm":         {},
		"":                  {},
		"poll://uni@g/p@q/": {routeUni, "g", "p@q/"},
	} {
		if got := parse(address); got != want {
			t.Errorf("%q: %+v, want %+v", address, got, want)
		}
	}
}
