package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// TestRandomEnds: workers connect, take messages and go, and tasks are acquired, released,
// suspended, halted and settled, or pass their deadlines. After each step the messages that
// wait for a group without a worker are exactly those of its pending tasks, in the order in
// which they were offered, and no message of another group or receiver is of a task that does
// not wait. When all tasks have ended, nothing is left in memory.
func TestRandomEnds(t *testing.T) {
	first, end := speed.Seeds(t, 5, 20, 2000)
	for seed := first; seed < end; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomEnds(t, seed) }) }) {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
}

// nobody is the group without a worker.
var nobody = []string{"poll://any@nobody", "poll://uni@nobody/p"}

// ending is a random history of tasks.
type ending struct {
	*testing.T
	engine      *engine.Engine
	rng         *rand.Rand
	addresses   []string
	tasks       []string
	awaited     int
	connections []*engine.Connection
	lines       map[string][]protocol.TaskRef // what nobody's lines must have
}

func randomEnds(t *testing.T, seed uint64) {
	w := &ending{T: t, rng: rand.New(rand.NewPCG(seed, 2)), lines: map[string][]protocol.TaskRef{}}
	receiver := rand.New(rand.NewPCG(seed, 3)) // used by other goroutines than the test
	push := newReceivers(func(string) (int, time.Duration) {
		return []int{200, 500, 0}[receiver.IntN(3)], time.Duration(receiver.IntN(3)) * time.Minute
	})
	w.engine = start(t, engine.Config{Push: push, Logger: quiet, BufferMax: 1 + w.rng.IntN(3)})
	w.addresses = append(w.addresses, nobody...)
	w.addresses = append(w.addresses, "poll://any@g", "poll://any@g/p", "poll://uni@g/p", "http://a/1", "http://a/2", "http://b/1")
	for range 200 {
		w.step()
		synctest.Wait()
		w.compare()
	}
	for _, id := range w.tasks {
		do(t, w.engine, settle(id), 200)
	}
	for _, c := range w.connections {
		c.Close()
	}
	synctest.Wait()
	if messages, _ := w.engine.Messages(); messages != 0 {
		t.Errorf("%d messages are left", messages)
	}
	time.Sleep(10 * time.Minute) // the requests under way end
	if _, places := w.engine.Messages(); places != 0 {
		t.Errorf("%d empty lines and hosts are left", places)
	}
}

// step carries out a random operation.
func (w *ending) step() {
	switch w.rng.IntN(12) {
	case 0, 1, 2:
		id := fmt.Sprint("t", len(w.tasks))
		p := target(id, w.addresses[w.rng.IntN(len(w.addresses))])
		if w.rng.IntN(4) == 0 {
			p.TimeoutAt = time.Now().Add(time.Duration(w.rng.IntN(60)) * time.Second).UnixMilli()
		}
		w.tasks = append(w.tasks, id)
		do(w, w.engine, p, 200)
	case 3:
		w.connections = append(w.connections, connect(w, w.engine, "g", []string{"p", "q"}[w.rng.IntN(2)]))
	case 4, 5:
		w.read()
	case 6:
		time.Sleep(time.Duration(w.rng.IntN(20)) * time.Second)
	default:
		w.change()
	}
}

// read takes the message of a connection, or ends it.
func (w *ending) read() {
	if len(w.connections) == 0 {
		return
	}
	i := w.rng.IntN(len(w.connections))
	if w.rng.IntN(2) == 0 {
		w.connections[i].Close()
		w.connections = slices.Delete(w.connections, i, i+1)
		return
	}
	select {
	case <-w.connections[i].Messages():
	default:
	}
}

// change changes the state of a task. Its refusal is an outcome too.
func (w *ending) change() {
	if len(w.tasks) == 0 {
		return
	}
	id := w.tasks[w.rng.IntN(len(w.tasks))]
	task := do(w, w.engine, protocol.TaskGet{ID: id}, 200).Task
	var op protocol.Operation
	switch w.rng.IntN(7) {
	case 0:
		op = settle(id)
	case 1:
		op = protocol.TaskHalt{ID: id}
	case 2:
		op = protocol.TaskContinue{ID: id}
	case 3:
		op = protocol.TaskRelease{ID: id, Version: task.Version}
	case 4:
		op = w.suspend(id, task.Version)
	case 5: // in one transaction
		ops := []protocol.Operation{
			protocol.TaskAcquire{ID: id, Version: task.Version, PID: "w", TTL: 1}, protocol.TaskRelease{ID: id, Version: task.Version + 1},
		}
		if _, err := w.engine.DoAll(w.Context(), ops); err != nil {
			w.Fatal(err)
		}
		return
	default:
		op = protocol.TaskAcquire{ID: id, Version: task.Version, PID: "w", TTL: int64(1 + w.rng.IntN(60_000))}
	}
	if _, err := w.engine.Do(w.Context(), op); err != nil {
		w.Fatal(err)
	}
}

// suspend suspends a task, or settles what suspended tasks await.
func (w *ending) suspend(id string, version int64) protocol.Operation {
	awaited := fmt.Sprint("a", w.awaited)
	if w.rng.IntN(2) == 0 {
		w.awaited++
		return settle(awaited)
	}
	do(w, w.engine, create(awaited, protocol.TagScope, "global"), 200)
	return protocol.TaskSuspend{ID: id, Version: version, Actions: []protocol.RegisterCallback{{Awaited: awaited, Awaiter: id}}}
}

// compare compares the messages in memory with the tasks.
func (w *ending) compare() {
	w.Helper()
	pending := map[protocol.TaskRef]string{} // their addresses
	for _, id := range w.tasks {
		if task := do(w, w.engine, protocol.TaskGet{ID: id}, 200).Task; task.State == protocol.TaskPending {
			pending[protocol.TaskRef{ID: id, Version: task.Version}] = do(w, w.engine, protocol.PromiseGet{ID: id}, 200).Promise.Tags[protocol.TagTarget]
		}
	}
	for _, address := range w.addresses {
		for _, ref := range w.engine.HeldTasks(address) {
			if pending[ref] == "" && w.offered(ref) {
				w.Fatalf("the message of %v waits, which is not pending", ref)
			}
		}
	}
	for _, address := range nobody {
		w.compareLine(address, pending)
	}
}

// offered reports whether the deadline of a task that is shown as fulfilled has been
// processed. Until then its message may wait.
func (w *ending) offered(ref protocol.TaskRef) bool {
	p := do(w, w.engine, protocol.PromiseGet{ID: ref.ID}, 200).Promise
	return p.State != protocol.RejectedTimeout || time.Now().UnixMilli() > p.TimeoutAt+time.Second.Milliseconds()
}

// compareLine compares the messages for an address of nobody: those that were there before are
// in the same order, and those of tasks that were offered since then follow.
func (w *ending) compareLine(address string, pending map[protocol.TaskRef]string) {
	w.Helper()
	var kept, added []protocol.TaskRef
	for _, ref := range w.lines[address] {
		if pending[ref] != "" {
			kept = append(kept, ref)
		}
	}
	for ref, at := range pending {
		if at == address && !slices.Contains(kept, ref) {
			added = append(added, ref)
		}
	}
	got := slices.DeleteFunc(w.engine.HeldTasks(address), func(ref protocol.TaskRef) bool { return pending[ref] == "" })
	if len(got) != len(kept)+len(added) || !slices.Equal(got[:len(kept)], kept) {
		w.Fatalf("%s: the messages of %v wait, want %v and then %v in any order", address, got, kept, added)
	}
	for _, ref := range added {
		if !slices.Contains(got[len(kept):], ref) {
			w.Fatalf("%s: the messages of %v wait, want %v among them", address, got, ref)
		}
	}
	w.lines[address] = got
}
