package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// crew are the workers of a random test. They lose messages and leases until they are
// reliable.
type crew struct {
	engine   *engine.Engine
	reliable atomic.Bool

	mu  sync.Mutex
	rng *rand.Rand
}

func (w *crew) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// leaseMax is the longest lease that a worker lets end.
const leaseMax = 20 * time.Second

// handle carries out a task, loses its message, or acquires it and does nothing more.
func (w *crew) handle(m protocol.Message, pid string) {
	if m.Execute == nil {
		return
	}
	choice := w.draw(4)
	if w.reliable.Load() {
		choice = 3
	}
	if choice == 0 {
		return
	}
	ctx := context.Background()
	ttl := int64(1 + w.draw(int(leaseMax.Milliseconds())))
	r, err := w.engine.Do(ctx, protocol.TaskAcquire{ID: m.Execute.ID, Version: m.Execute.Version, PID: pid, TTL: ttl})
	if err != nil || r.Status != protocol.OK || choice == 1 {
		return // another worker has it, or the lease ends
	}
	end := protocol.PromiseSettle{ID: m.Execute.ID, State: protocol.Resolved}
	_, _ = w.engine.Do(ctx, protocol.TaskFulfill{ID: m.Execute.ID, Version: r.Task.Version, Action: end}) // the state of the tasks is checked at the end
}

// serve handles the messages of a connection, some of them slowly.
func (w *crew) serve(c protocol.Connection, pid string) {
	for m := range c.Messages() {
		if !w.reliable.Load() {
			time.Sleep(time.Duration(w.draw(5)) * time.Second)
		}
		w.handle(m, pid)
	}
}

// RoundTrip is the receiver of pushes.
func (w *crew) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, err := protocol.DecodeMessage(body)
	if err != nil {
		return nil, err
	}
	if !w.reliable.Load() && w.draw(3) == 0 {
		return nil, errors.New("connection refused")
	}
	w.handle(m, "push")
	return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestRandomRetries: while workers come and go, and lose messages and leases, no task is
// forgotten. When all workers are reliable, they have all tasks after two retry timeouts, and
// receivers of pushes after their delay.
func TestRandomRetries(t *testing.T) {
	first, end := speed.Seeds(t, 6, 50, 10_000)
	for seed := first; seed < end; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomRetries(t, seed) }) }) {
			t.Fatal(speed.Repeat(t, seed))
		}
	}
}

func randomRetries(t *testing.T, seed uint64) {
	w := &crew{rng: rand.New(rand.NewPCG(seed, 1))}
	s := &hooked{Store: store.NewMemory()}
	e := start(t, engine.Config{Store: s, Push: w, Logger: quiet, BufferMax: 1 + w.draw(3)})
	w.engine = e
	const groups, processes = 2, 3
	addresses := []string{"http://host/a", "http://host/b"}
	for g := range groups {
		addresses = append(addresses, fmt.Sprint("poll://any@", g))
		for p := range processes {
			addresses = append(addresses, fmt.Sprint("poll://any@", g, "/", p), fmt.Sprint("poll://uni@", g, "/", p))
		}
	}
	connections := map[[2]int]protocol.Connection{}
	connect := func(k [2]int) {
		pid := fmt.Sprint(k[1])
		c, err := e.Connect(fmt.Sprint(k[0]), pid)
		must(t, err)
		connections[k] = c
		go w.serve(c, pid)
	}
	tasks := 0
	for range 100 {
		k := [2]int{w.draw(groups), w.draw(processes)}
		switch w.draw(4) {
		case 0:
			connect(k)
		case 1:
			if c := connections[k]; c != nil {
				c.Close()
			}
		default:
			for range 1 + w.draw(5) {
				do(t, e, target(fmt.Sprint("t", tasks), addresses[w.draw(len(addresses))]), 200)
				tasks++
			}
		}
		time.Sleep(time.Duration(w.draw(15_000)) * time.Millisecond)
	}
	w.reliable.Store(true)
	for g := range groups {
		for p := range processes {
			connect([2]int{g, p})
		}
	}
	const retryTimeout, pushDelayMax = 30 * time.Second, time.Minute
	time.Sleep(leaseMax + 2*retryTimeout + time.Second)
	for address, ids := range w.left(t, tasks) {
		if strings.HasPrefix(address, "poll:") {
			t.Errorf("seed %d: workers for %s did not get %v", seed, address, ids)
		}
	}
	time.Sleep(pushDelayMax + 2*retryTimeout) // an address that fails gets one message after the delay, and the others when it has worked
	if left := w.left(t, tasks); len(left) > 0 {
		t.Errorf("seed %d: tasks were forgotten: %v", seed, left)
	}
	check(t, s)
	for _, c := range connections {
		c.Close()
	}
}

// left returns the tasks that are not fulfilled, by their addresses.
func (w *crew) left(t *testing.T, tasks int) map[string][]string {
	t.Helper()
	left := map[string][]string{}
	for i := range tasks {
		id := fmt.Sprint("t", i)
		r, err := w.engine.Do(t.Context(), protocol.TaskGet{ID: id})
		must(t, err)
		if r.Task.State == protocol.TaskFulfilled {
			continue
		}
		p, err := w.engine.Do(t.Context(), protocol.PromiseGet{ID: id})
		must(t, err)
		address := p.Promise.Tags[protocol.TagTarget]
		left[address] = append(left[address], id)
	}
	return left
}
