package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// waiting returns the messages that a connection has now, without those that arrive later.
func waiting(c *engine.Connection) (texts []string) {
	for {
		synctest.Wait()
		select {
		case m, ok := <-c.Messages():
			if !ok {
				return append(texts, "closed")
			}
			texts = append(texts, text(m))
		default:
			return texts
		}
	}
}

func expect(t *testing.T, c *engine.Connection, want ...string) {
	t.Helper()
	if got := waiting(c); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// notify creates a promise, registers a listener, and settles the promise.
func notify(t *testing.T, e *engine.Engine, id, address string) {
	t.Helper()
	do(t, e, create(id, protocol.TagExternal, "true"), 200)
	do(t, e, protocol.RegisterListener{Awaited: id, Address: address}, 200)
	do(t, e, settle(id), 200)
}

// outbox returns the number of unblock messages in a store.
func outbox(t *testing.T, s store.Store) (n int) {
	t.Helper()
	must(t, s.View(func(tx store.Tx) error {
		for range tx.Ascend(core.Outbox, nil) {
			n++
		}
		return nil
	}))
	return n
}

// TestRouting sends messages to all kinds of addresses.
func TestRouting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		a, b, other := connect(t, e, "g", "a"), connect(t, e, "g", "b"), connect(t, e, "h", "a")
		for _, one := range []struct {
			address string
			to      *engine.Connection // nil: held
		}{
			{"poll://any@g/a", a}, {"poll://any@g/b", b}, {"poll://uni@g/a", a}, {"poll://uni@g/b", b},
			{"poll://any@h", other}, {"poll://any@h/z", other}, {"poll://uni@h/z", nil}, {"poll://any@nothing", nil},
		} {
			do(t, e, target("task "+one.address, one.address), 200)
			notify(t, e, "promise "+one.address, one.address)
			want := []string{"execute task " + one.address + " 0", "unblock promise " + one.address + " resolved"}
			for _, c := range []*engine.Connection{a, b, other} {
				if c == one.to {
					expect(t, c, want...)
				} else {
					expect(t, c)
				}
			}
		}
		if s := e.Stats(); s.Held != 2 || s.Connections != 3 || s.Executes != 8 || s.Unblocks != 8 || s.Polled.Delivered != 12 {
			t.Errorf("%+v", s)
		}
		late := connect(t, e, "h", "z")
		expect(t, late, "execute task poll://uni@h/z 0", "unblock promise poll://uni@h/z resolved")
		expect(t, connect(t, e, "nothing", "x"), "execute task poll://any@nothing 0", "unblock promise poll://any@nothing resolved")
	})
}

// TestTurns: the processes of a group get messages in turns, and a process that has fewer
// waiting messages gets them first.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		connections := []*engine.Connection{connect(t, e, "g", "0"), connect(t, e, "g", "1"), connect(t, e, "g", "2")}
		for i := range 6 { // all of them read at once
			do(t, e, target(fmt.Sprint("s", i), "poll://any@g"), 200)
			expect(t, connections[i%3], fmt.Sprintf("execute s%d 0", i))
		}
		for i := range 9 {
			do(t, e, target(fmt.Sprint("t", i), "poll://any@g"), 200)
		}
		for i, c := range connections {
			expect(t, c, fmt.Sprintf("execute t%d 0", i), fmt.Sprintf("execute t%d 0", i+3), fmt.Sprintf("execute t%d 0", i+6))
		}
		for i := range 9 { // connection 1 reads nothing
			do(t, e, target(fmt.Sprint("u", i), "poll://any@g"), 200)
			synctest.Wait()
			for _, c := range []*engine.Connection{connections[0], connections[2]} {
				waiting(c)
			}
		}
		if got := waiting(connections[1]); len(got) > 2 { // one in the buffer, one in the channel
			t.Errorf("a process that does not read has %d of 9 messages", len(got))
		}
	})
}

// TestConnectionThatNeverReads: its messages go to others, wait in memory, or in the
// store. Nothing is lost when it reads, and callers do not wait for it.
func TestConnectionThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		c := connect(t, e, "g", "p")
		const n = 450
		for i := range n {
			do(t, e, target(fmt.Sprint("t", i), "poll://any@g"), 200)
			notify(t, e, fmt.Sprint("p", i), "poll://uni@g/p")
		}
		synctest.Wait()
		// 100 messages in the buffer and one in the hand of the pump
		if stats := e.Stats(); stats.Held < n-101 || stats.Polled.Delivered != 0 || outbox(t, s) != n {
			t.Errorf("%+v, %d in the store", stats, outbox(t, s))
		}
		executes, unblocks := 0, 0
		for range 2 * n {
			if m := <-c.Messages(); m.Execute != nil {
				executes++
			} else {
				unblocks++
			}
			synctest.Wait() // refills
		}
		if executes != n || unblocks != n {
			t.Errorf("%d executes, %d unblocks", executes, unblocks)
		}
		expect(t, c)
		time.Sleep(time.Second)
		if got := outbox(t, s); got != 0 {
			t.Errorf("%d messages are in the store", got)
		}
	})
}

// TestHeldLimit: execute messages without a place are dropped and counted, and retries
// send them again.
func TestHeldLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		most := limitHeld(t, e)
		n := most + most/20
		createTasks(t, e, "poll://any@g", n)
		synctest.Wait()
		if s := e.Stats(); s.Held != most || s.Polled.Dropped != uint64(n-most) {
			t.Errorf("%+v", s)
		}
		seen := map[string]bool{}
		c := connect(t, e, "g", "p")
		for len(seen) < n {
			m := <-c.Messages()
			seen[m.Execute.ID] = true
			do(t, e, protocol.TaskAcquire{ID: m.Execute.ID, PID: "p", TTL: 1e9}, 200)
		}
		expect(t, c)
	})
}

// TestHeldTaskThatEnded: a message for a worker that is not connected yet is not sent when
// the task has ended, or has another worker, in the meantime.
func TestHeldTaskThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		for _, id := range []string{"settled", "acquired", "halted", "released", "pending"} {
			do(t, e, target(id, "poll://any@g"), 200)
		}
		do(t, e, settle("settled"), 200)
		do(t, e, protocol.TaskAcquire{ID: "acquired", PID: "w", TTL: 1e9}, 200)
		do(t, e, protocol.TaskHalt{ID: "halted"}, 200)
		do(t, e, protocol.TaskAcquire{ID: "released", PID: "w", TTL: 1e9}, 200)
		do(t, e, protocol.TaskRelease{ID: "released", Version: 1}, 200)
		synctest.Wait()
		expect(t, connect(t, e, "g", "p"), "execute pending 0", "execute released 1")
		if s := e.Stats(); s.Held != 0 || s.Ended != 4 || s.Polled.Delivered != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestReconnect: a process that connects again gets the messages that its earlier
// connection did not take, and the earlier connection is closed.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		first := connect(t, e, "g", "p")
		for i := range 5 {
			do(t, e, target(fmt.Sprint("t", i), "poll://uni@g/p"), 200)
		}
		notify(t, e, "promise", "poll://uni@g/p")
		if got := receive(t, first); got != "execute t0 0" {
			t.Error(got)
		}
		second := connect(t, e, "g", "p")
		expect(t, first, "closed")
		got := waiting(second)
		slices.Sort(got)
		if want := []string{"execute t1 0", "execute t2 0", "execute t3 0", "execute t4 0", "unblock promise resolved"}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		first.Close()
		second.Close()
		expect(t, second, "closed")

		third, other := connect(t, e, "h", "p"), connect(t, e, "h", "q")
		for i := range 4 {
			do(t, e, target(fmt.Sprint("u", i), "poll://any@h/p"), 200)
		}
		notify(t, e, "another", "poll://any@h/p")
		third.Close()
		got = waiting(other)
		slices.Sort(got)
		if want := []string{"execute u0 0", "execute u1 0", "execute u2 0", "execute u3 0", "unblock another resolved"}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		do(t, e, target("last", "poll://uni@g/p"), 200)
		expect(t, connect(t, e, "g", "p"), "execute last 0")
	})
}

// TestConfirm: a message that a server could not send goes to another connection, or to
// the next one, however long the attempt took.
func TestConfirm(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := store.NewMemory()
			e := start(t, engine.Config{Store: s})
			first, second := connect(t, e, "g", "1"), connect(t, e, "g", "2")
			first.Confirm()
			second.Confirm()
			notify(t, e, "promise", "poll://any@g/1")
			notify(t, e, "later", "poll://any@g/1")
			if got := receive(t, first); got != "unblock promise resolved" {
				t.Error(got)
			}
			time.Sleep(wait)
			if outbox(t, s) != 2 {
				t.Error("a message that was not confirmed is no longer in the store")
			}
			first.Close()
			var got []string
			for range 2 {
				got = append(got, receive(t, second))
				if len(got) == 1 {
					second.Confirmed()
				}
			}
			slices.Sort(got)
			if want := []string{"unblock later resolved", "unblock promise resolved"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			time.Sleep(time.Second)
			if outbox(t, s) != 1 {
				t.Error("the store does not have the message that was not confirmed, and only it")
			}
			second.Close()
			second.Close()
			third := connect(t, e, "g", "3") // does not confirm
			receive(t, third)
			time.Sleep(time.Second)
			if outbox(t, s) != 0 {
				t.Error("the message is still in the store")
			}
			if s := e.Stats(); s.Polled.Failed != 2 || s.Polled.Delivered != 2 || s.Connections != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestConfirmExecutes: the same for messages that only wait in memory, and for a process
// that connects again before its former connection is known to be broken.
func TestConfirmExecutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{})
		first := connect(t, e, "g", "1")
		first.Confirm()
		do(t, e, target("task", "poll://any@g"), 200)
		if got := receive(t, first); got != "execute task 0" {
			t.Error(got)
		}
		again := connect(t, e, "g", "1")
		again.Confirm()
		if got := receive(t, again); got != "execute task 0" {
			t.Error(got)
		}
		again.Confirmed()
		again.Close()
		expect(t, connect(t, e, "g", "1"))
	})
}

// TestConnections: limits and names of connections.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, engine.Config{ConnectionsMax: 3})
		var all []*engine.Connection
		for i := range 3 {
			all = append(all, connect(t, e, "g", fmt.Sprint(i)))
		}
		if _, err := e.Connect("g", "3"); !errors.Is(err, engine.ErrConnections) {
			t.Error(err)
		}
		connect(t, e, "g", "0") // replaces one
		all[1].Close()
		connect(t, e, "g", "3")
		for _, names := range [][2]string{{"", "p"}, {"g", ""}, {"g/h", "p"}} {
			if _, err := e.Connect(names[0], names[1]); !errors.Is(err, engine.ErrConnectionNames) {
				t.Error(names, err)
			}
		}
	})
}

// TestRestart: messages that no connection took are sent after a restart: unblock messages
// from the store, and execute messages of pending tasks whose delay has passed.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		do(t, e, target("pending", "poll://any@g"), 200)
		do(t, e, target("acquired", "poll://any@g"), 200)
		do(t, e, protocol.TaskAcquire{ID: "acquired", PID: "p", TTL: 60_000}, 200)
		do(t, e, create("delayed", protocol.TagTarget, "poll://any@g", protocol.TagDelay, fmt.Sprint(time.Now().Add(time.Minute).UnixMilli())), 200)
		notify(t, e, "taken", "poll://any@g")
		c := connect(t, e, "g", "p")
		if got := waiting(c); !slices.Contains(got, "unblock taken resolved") {
			t.Error(got)
		}
		c.Close()
		synctest.Wait()
		notify(t, e, "waiting", "poll://any@g")
		must(t, e.Close(context.Background()))

		e = start(t, engine.Config{Store: s.Snapshot()})
		begin := time.Now()
		c = connect(t, e, "g", "q")
		expect(t, c, "execute pending 0", "unblock waiting resolved")
		do(t, e, protocol.TaskAcquire{ID: "pending", PID: "q", TTL: 1e9}, 200)
		if got := receive(t, c); got != "execute acquired 1" || time.Since(begin) > time.Minute {
			t.Error(got, time.Since(begin))
		}
		do(t, e, protocol.TaskAcquire{ID: "acquired", Version: 1, PID: "q", TTL: 1e9}, 200)
		if got := receive(t, c); got != "execute delayed 0" {
			t.Error(got)
		}
	})
}

// TestKilledBeforeTheAcknowledgement: an unblock message whose delivery was not committed
// is sent again after a kill, and not before.
func TestKilledBeforeTheAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		e := start(t, engine.Config{Store: s})
		c := connect(t, e, "g", "p")
		notify(t, e, "promise", "poll://any@g")
		expect(t, c, "unblock promise resolved")
		killed := s.Snapshot()
		connect(t, e, "g", "q") // asks the store for messages
		expect(t, c)
		time.Sleep(time.Second)
		if outbox(t, s) != 0 || outbox(t, killed) != 1 {
			t.Error(outbox(t, s), outbox(t, killed))
		}
		after := start(t, engine.Config{Store: killed})
		expect(t, connect(t, after, "g", "p"), "unblock promise resolved")
		must(t, after.Close(context.Background()))
		if outbox(t, killed.Snapshot()) != 0 {
			t.Error("Close must commit the delivery")
		}
	})
}
