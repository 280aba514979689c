//go:build unix

package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

const (
	childVariable = "TOPOGEN_ENGINE_TEST_CHILD" // the directory of the store
	childSeed     = "TOPOGEN_ENGINE_TEST_SEED"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		child(dir)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child carries out operations until it is killed, and prints each answer: an operation
// that it has printed must survive. Several goroutines work on promises of their own.
func child(dir string) {
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := engine.Open(engine.Config{Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := e.Connect("g", "child")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		for range c.Messages() {
		}
	}()
	seed := os.Getenv(childSeed)
	var out sync.Mutex
	for worker := range 8 {
		go func() {
			for i := 0; ; i++ {
				life(e, &out, fmt.Sprintf("%s-%d-%d", seed, worker, i), i%4)
			}
		}()
	}
	select {}
}

// life carries out the operations on a promise, and prints its state after each.
func life(e *engine.Engine, out *sync.Mutex, id string, kind int) {
	step := func(op protocol.Operation, state string) {
		r, err := e.Do(context.Background(), op)
		out.Lock()
		defer out.Unlock()
		if err != nil || r.Status != 200 {
			fmt.Println("error", op.Kind(), r.Status, r.Error, err)
			os.Exit(1)
		}
		fmt.Println(id, state)
	}
	switch kind {
	case 0:
		step(create(id), "pending")
		step(settle(id), "resolved")
	case 1: // a task, its worker and a listener
		step(target(id, "poll://any@g"), "pending")
		step(protocol.RegisterListener{Awaited: id, Address: "poll://any@g"}, "pending")
		step(protocol.TaskAcquire{ID: id, PID: "w", TTL: 60_000}, "acquired 1")
		step(protocol.TaskFulfill{ID: id, Version: 1, Action: settle(id)}, "resolved")
	case 2: // a task that waits for another promise
		step(protocol.TaskCreate{PID: "w", TTL: 60_000, Action: target(id, "poll://any@g")}, "acquired 1")
		step(create(id+".1", protocol.TagExternal, "true"), "acquired 1")
		step(protocol.TaskSuspend{ID: id, Version: 1, Actions: []protocol.RegisterCallback{{Awaited: id + ".1", Awaiter: id}}}, "suspended 1")
		step(settle(id+".1"), "pending 1")
		step(protocol.TaskAcquire{ID: id, Version: 1, PID: "w", TTL: 60_000}, "acquired 2")
	case 3: // a timeout
		p := create(id, protocol.TagExternal, "true")
		p.TimeoutAt = time.Now().UnixMilli() + 5
		step(p, "timeout")
	}
}

// rank orders the states of a promise of a child.
var rank = map[string]int{"pending": 0, "acquired 1": 1, "suspended 1": 2, "pending 1": 3, "acquired 2": 4, "resolved": 5}

// TestKilled kills a process with an engine at random times. After each kill, all answered
// operations are in the store, and all invariants hold.
func TestKilled(t *testing.T) {
	rounds := speed.Pick(t, 2, 12, 250)
	dir := memdir.Quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	answered := map[string]string{}
	for round := range rounds {
		killed(t, dir, round, rng, answered)
		s, err := store.Open(dir, store.Options{})
		must(t, err)
		check(t, s)
		must(t, s.Close())
	}
	s, err := store.Open(dir, store.Options{})
	must(t, err)
	e := start(t, engine.Config{Store: s})
	for id, state := range answered {
		survived(t, e, id, state)
	}
	if len(answered) < rounds {
		t.Errorf("only %d promises", len(answered))
	}
	t.Logf("%d promises", len(answered))
	must(t, e.Close(context.Background()))
	s, err = store.Open(dir, store.Options{})
	must(t, err)
	check(t, s)
	must(t, s.Close())
}

// killed runs a child, kills it a moment after a random number of answers, and adds its
// answers.
func killed(t *testing.T, dir string, round int, rng *rand.Rand, answered map[string]string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir, childSeed+"="+strconv.Itoa(round))
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }() // it was killed
	last, moment := rng.IntN(300), time.Duration(rng.IntN(3000))*time.Microsecond
	for n, out := 0, bufio.NewReader(pipe); ; n++ {
		if n == last {
			time.AfterFunc(moment, func() { _ = cmd.Process.Kill() })
		}
		line, err := out.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		id, state, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || id == "error" || !strings.HasPrefix(id, strconv.Itoa(round)+"-") {
			t.Fatalf("the child prints %q", line)
		}
		answered[id] = state
	}
}

// survived checks that a promise has the state that was answered, or a later one. Its next
// operation may have been carried out without an answer.
func survived(t *testing.T, e *engine.Engine, id, state string) {
	t.Helper()
	now := time.Now().UnixMilli()
	p := do(t, e, protocol.PromiseGet{ID: id}, 200).Promise
	if state == "timeout" {
		if p.State != protocol.RejectedTimeout && now >= p.TimeoutAt {
			t.Errorf("%s is %s after its deadline", id, p.State)
		}
		return
	}
	got := string(p.State)
	if _, isTask := p.Tags[protocol.TagTarget]; isTask && p.State == protocol.Pending {
		task := do(t, e, protocol.TaskGet{ID: id}, 200).Task
		if got = string(task.State); task.Version > 0 {
			got += " " + strconv.FormatInt(task.Version, 10)
		}
	}
	if rank[got] < rank[state] || rank[got] > rank[state]+1 && state != "pending" && state != "acquired 1" {
		t.Errorf("%s is %q, %q was answered", id, got, state)
	}
}
