package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// doAll carries out operations with as few transactions as possible.
func doAll(t *testing.T, e *engine.Engine, ops []protocol.Operation) {
	t.Helper()
	for len(ops) > 0 {
		n := min(len(ops), 1000)
		results, err := e.DoAll(t.Context(), ops[:n])
		must(t, err)
		for i, r := range results {
			if r.Status != protocol.OK {
				t.Fatalf("%s: status %d %s", ops[i].Kind(), r.Status, r.Error)
			}
		}
		ops = ops[n:]
	}
	synctest.Wait() // an operation is answered before its messages are held
}

// ends are the ways in which a task stops to wait for a worker, as operations on task id.
var ends = map[string]func(id string) []protocol.Operation{
	"settled": func(id string) []protocol.Operation { return []protocol.Operation{settle(id)} },
	"halted":  func(id string) []protocol.Operation { return []protocol.Operation{protocol.TaskHalt{ID: id}} },
	"acquired": func(id string) []protocol.Operation {
		return []protocol.Operation{protocol.TaskAcquire{ID: id, PID: "other", TTL: 1e12}}
	},
	"created by a worker": func(id string) []protocol.Operation {
		return []protocol.Operation{protocol.TaskCreate{PID: "other", TTL: 1e12, Action: target(id, "poll://any@g")}}
	},
	"suspended": func(id string) []protocol.Operation {
		return []protocol.Operation{
			create("awaited", protocol.TagScope, "global"), protocol.TaskAcquire{ID: id, PID: "other", TTL: 1e12},
			protocol.TaskSuspend{ID: id, Version: 1, Actions: []protocol.RegisterCallback{{Awaited: "awaited", Awaiter: id}}},
		}
	},
	"deleted":             func(string) []protocol.Operation { return nil }, // by debug.reset
	"passed its deadline": func(string) []protocol.Operation { return nil },
}

// TestEndedTasks: the message of a task that does not wait for a worker any longer leaves the
// memory, and the next message has its place at once.
func TestEndedTasks(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := start(t, engine.Config{Debug: name == "deleted"})
				heldMax := limitHeld(t, e)
				var creates, operations []protocol.Operation
				for i := range heldMax {
					p := target(fmt.Sprint("t", i), "poll://any@g")
					if name == "passed its deadline" {
						p.TimeoutAt = time.Now().Add(10 * time.Second).UnixMilli()
					}
					creates = append(creates, p)
					operations = append(operations, end(p.ID)...)
				}
				doAll(t, e, creates)
				if held := e.Stats().Held; held != heldMax {
					t.Fatalf("%d messages are held, want %d", held, heldMax)
				}
				time.Sleep(11 * time.Second)
				if name == "deleted" {
					do(t, e, protocol.DebugReset{}, 200)
				}
				doAll(t, e, operations)
				if held := e.Stats().Held; held != 0 {
					t.Errorf("%d messages are held", held)
				}
				do(t, e, target("new", "poll://any@g"), 200)
				begin := time.Now()
				if got := receive(t, connect(t, e, "g", "p")); got != "execute new 0" || time.Since(begin) > 0 {
					t.Errorf("%s after %v", got, time.Since(begin))
				}
			})
		})
	}
}

// TestEndedTasksOfManyGroups: tasks of groups without a worker that have ended leave no message
// in memory, so that the first message of a new group has its place at once.
func TestEndedTasksOfManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups = 10
		e := start(t, engine.Config{})
		heldMax := limitHeld(t, e)
		var creates, settles []protocol.Operation
		for i := range groups * heldMax {
			id := fmt.Sprint("t", i)
			creates = append(creates, target(id, fmt.Sprint("poll://any@", i%groups)))
			settles = append(settles, settle(id))
		}
		doAll(t, e, creates)
		if held := e.Stats().Held; held != groups*heldMax {
			t.Fatalf("%d messages are held, want %d", held, groups*heldMax)
		}
		doAll(t, e, settles)
		do(t, e, target("new", "poll://any@g"), 200)
		synctest.Wait()
		if held := e.Stats().Held; held != 1 {
			t.Errorf("%d messages are held, want 1", held)
		}
		begin := time.Now()
		if got := receive(t, connect(t, e, "g", "p")); got != "execute new 0" || time.Since(begin) > 0 {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
	})
}

// TestEndedTasksMakeRoom: a message that had no place gets one when messages of ended tasks
// have left the memory, also if no worker connects.
func TestEndedTasksMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		heldMax := limitHeld(t, e)
		createTasks(t, e, "poll://any@g", heldMax)
		do(t, e, target("late", "poll://any@g"), 200)
		time.Sleep(time.Hour)
		var settles []protocol.Operation
		for i := range heldMax {
			settles = append(settles, settle(fmt.Sprint("t", i)))
		}
		doAll(t, e, settles)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if held := e.Stats().Held; held != 1 {
			t.Errorf("%d messages are held, want 1", held)
		}
	})
}

// TestEndedTasksOfConnection: the messages that a worker has not taken do not stay in memory if
// their tasks have ended when the worker goes.
func TestEndedTasksOfConnection(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const n = engine.BufferMaxDefault
			e := start(t, engine.Config{})
			c := connect(t, e, "g", "p")
			if confirm {
				c.Confirm()
			}
			createTasks(t, e, "poll://any@g", n)
			if confirm {
				receive(t, c)
			}
			for i := range n - 2 {
				do(t, e, settle(fmt.Sprint("t", i)), 200)
			}
			c.Close()
			synctest.Wait()
			if held := e.Stats().Held; held != 2 {
				t.Errorf("%d messages are held, want 2", held)
			}
			next := connect(t, e, "g", "next")
			expect(t, next, fmt.Sprintf("execute t%d 0", n-2), fmt.Sprintf("execute t%d 0", n-1))
		})
	}
}

// TestEndedTasksOfPushes: the messages of ended tasks for URLs that do not answer leave the
// memory, so that messages for other receivers have a place.
func TestEndedTasksOfPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waitingMax := speed.Pick(t, 1000, 10_000, 10_000)
		n := waitingMax + 500
		r := newReceivers(func(url string) (int, time.Duration) {
			if strings.HasPrefix(url, "http://slow") {
				return 200, 170 * time.Second
			}
			return 200, 0
		})
		e := start(t, engine.Config{Push: r, Logger: quiet})
		if waitingMax < 10_000 {
			e.SetPushMax(waitingMax, 1<<20)
		}
		var creates, settles []protocol.Operation
		for i := range n {
			id := fmt.Sprint("t", i)
			creates = append(creates, target(id, fmt.Sprint("http://slow/", i%1000)))
			settles = append(settles, settle(id))
		}
		doAll(t, e, creates)
		r.take()
		doAll(t, e, settles)
		do(t, e, target("new", "http://other"), 200)
		synctest.Wait()
		if got := fmt.Sprint(r.take()); !strings.Contains(got, "http://other execute new 0") {
			t.Errorf("the new receiver got nothing: %s", got)
		}
		do(t, e, settle("new"), 200)
		time.Sleep(10 * time.Minute)
		if got := r.take(); len(got) > 0 {
			t.Errorf("%d messages of ended tasks were sent, %s first", len(got), got[0])
		}
		must(t, e.Close(context.Background()))
	})
}
