package durabletests_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// lease is the lease of the workers in milliseconds. It is short, because a successor
// waits for its end.
const lease = "LEASE=1000"

// effects is the file to which steps write their numbers.
type effects struct {
	*bench
	path string
}

func (b *bench) effects() effects {
	return effects{b, filepath.Join(b.TempDir(), "effects.txt")}
}

// text returns the file.
func (e effects) text() string {
	e.Helper()
	text, err := os.ReadFile(e.path)
	if err != nil && !os.IsNotExist(err) {
		e.Fatal(err)
	}
	return string(text)
}

// steps returns the numbers of the steps that ran, in order.
func (e effects) steps() []int {
	e.Helper()
	var list []int
	for line := range strings.Lines(e.text()) {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "step "))
		if err != nil {
			e.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// worker starts a worker of a group of its own.
func (e effects) worker(variables ...string) *sdkProcess {
	e.Helper()
	return e.node(append([]string{"GROUP=kills", lease, "EFFECTS=" + e.path}, variables...), "worker.ts")
}

// begin begins a call of a group that has no worker yet, and returns the process that
// waits for its result.
func (b *bench) begin(group string, args ...string) *sdkProcess {
	b.Helper()
	b.node([]string{"GROUP=" + group}, "begin.ts", args...).want("began " + args[0] + "\n")
	p := b.node(nil, "result.ts", args[0])
	b.await("the process waits", func() bool { return p.out.String() == "done: false\n" })
	return p
}

// TestDurableSDKKilledWorker kills a worker in step 3 of 5. Its successor repeats this step, whose
// result is not recorded, and no other.
func TestDurableSDKKilledWorker(t *testing.T) {
	t.Parallel()
	b := prepare(t, "")
	e := b.effects()
	waits := e.begin("kills", "killed", "steps", "5")
	first := e.worker("HANG=3")
	e.await("step 3 runs", func() bool { return slices.Contains(e.steps(), 3) })
	first.kill()
	e.worker()
	waits.want("done: false\nresult: 5\n")
	if got, want := e.steps(), []int{1, 2, 3, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("steps %v ran, want %v", got, want)
	}
}

// TestDurableSDKWorkersKilledAtRandom kills five workers, each in the middle of its steps.
func TestDurableSDKWorkersKilledAtRandom(t *testing.T) {
	t.Parallel()
	b := prepare(t, "")
	e := b.effects()
	const steps, kills = 40, 5
	waits := e.begin("kills", "killed", "steps", fmt.Sprint(steps))
	w := e.worker("PAUSE=20")
	for range kills {
		e.awaitMore(1 + rand.IntN(steps/kills-1))
		w.kill()
		w = e.worker("PAUSE=20")
	}
	waits.want(fmt.Sprintf("done: false\nresult: %d\n", steps))
	e.check("killed", steps, kills)
}

// TestDurableSDKServerKilled kills the server three times while a worker runs steps. The client
// that waits for the result gets it, although it asked an earlier process of the server.
func TestDurableSDKServerKilled(t *testing.T) {
	t.Parallel()
	b := prepare(t, "")
	e := b.effects()
	const steps, kills = 40, 3
	waits := e.begin("kills", "survives", "steps", fmt.Sprint(steps))
	e.worker("PAUSE=20")
	for range kills {
		e.awaitMore(1 + rand.IntN(steps/kills-1))
		b.server.kill()
		b.serve()
	}
	waits.want(fmt.Sprintf("done: false\nresult: %d\n", steps))
	e.check("survives", steps, 0)
}

// TestDurableSDKAllKilled kills workers and the server in turn, while fib(9) calls itself 109 times
// on three workers.
func TestDurableSDKAllKilled(t *testing.T) {
	t.Parallel()
	b := prepare(t, "")
	e := b.effects()
	waits := e.begin("kills", "fib", "fib", "9")
	workers := []*sdkProcess{e.worker(), e.worker(), e.worker()}
	for i := range 6 {
		before := b.resolved("fib")
		b.await("more calls end", func() bool { return b.resolved("fib") >= before+5 })
		if w := rand.IntN(3); i%2 == 0 {
			workers[w].kill()
			workers[w] = e.worker()
		} else {
			b.server.kill()
			b.serve()
		}
	}
	waits.want("done: false\nresult: 34\n")
	if got := b.resolved("fib"); got != 109 {
		t.Errorf("%d calls have ended, want 109", got)
	}
}

// awaitMore waits until n more steps have run.
func (e effects) awaitMore(n int) {
	e.Helper()
	before := len(e.steps())
	e.await(fmt.Sprint(n, " more steps run"), func() bool { return len(e.steps()) >= before+n })
}

// check checks that all steps ran, in order. A step that runs when its worker is killed
// or loses its lease is repeated, and no step that has ended: so no more steps are
// repeated than tasks were acquired again. A worker whose server was killed may keep its task.
func (e effects) check(id string, steps, workers int) {
	e.Helper()
	got := e.steps()
	acquired := e.version(id)
	e.Logf("acquired %d times, steps %v", acquired, got)
	if !slices.IsSorted(got) {
		e.Errorf("steps %v ran, want none after a later one", got)
	}
	if repeated := len(got) - steps; repeated < 0 || repeated > int(acquired)-1 {
		e.Errorf("%d steps were repeated, want at most %d: %v", repeated, acquired-1, got)
	}
	if unique := slices.Compact(slices.Clone(got)); len(unique) != steps || unique[steps-1] != steps {
		e.Errorf("steps %v ran, want 1 to %d", unique, steps)
	}
	if acquired <= int64(workers) {
		e.Errorf("the task was acquired %d times, and %d workers were killed while they had it", acquired, workers)
	}
}

// version returns how often a task was acquired.
func (b *bench) version(id string) int64 {
	b.Helper()
	return b.do(protocol.TaskGet{ID: id}).Task.Version
}

// resolved returns how many promises of a workflow are resolved.
func (b *bench) resolved(origin string) int {
	b.Helper()
	tags := map[string]string{protocol.TagOrigin: origin}
	return len(b.do(protocol.PromiseSearch{State: protocol.Resolved, Tags: tags, Limit: protocol.MaxSearch}).Promises)
}

// do asks the server.
func (b *bench) do(op protocol.Operation) protocol.Result {
	b.Helper()
	c, err := client.New("http://"+b.address, client.Options{Token: b.token})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	result, err := c.Do(b.Context(), op)
	if err != nil || result.Status != protocol.OK {
		b.Fatal(err, result.Error)
	}
	return result
}
