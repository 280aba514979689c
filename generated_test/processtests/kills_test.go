//go:build linux

package processtests_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/kills"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/process"
)

// witness is the record of the parent: it observes failures, and keeps other log records.
type witness struct {
	mu         sync.Mutex
	failed     []error // failures of instances that had run
	notStarted []error // failures of instances that had not started
	others     []string
}

func (w *witness) Enabled(context.Context, slog.Level) bool { return true }
func (w *witness) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *witness) WithGroup(string) slog.Handler            { return w }
func (w *witness) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	r.Attrs(func(a slog.Attr) bool {
		if e, ok := a.Value.Any().(error); ok {
			err = e
		}
		return true
	})
	switch r.Message {
	case "topogen: an instance has failed", "topogen: an instance cannot be restarted": // observed
	default:
		if r.Level > slog.LevelInfo {
			w.others = append(w.others, fmt.Sprint(r.Message, " ", err))
		}
	}
	return nil
}

func (w *witness) Failed(_ string, _ int, err error)     { w.note(&w.failed, err) }
func (w *witness) NotStarted(_ string, _ int, err error) { w.note(&w.notStarted, err) }

func (w *witness) note(list *[]error, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, err)
}

func (*witness) Moved(string, int, int, int)        {}
func (*witness) Finished(string)                    {}
func (*witness) Restarted(string, int)              {}
func (*witness) GaveUp(string, int, error)          {}
func (*witness) InputBroken(string, int, string)    {}
func (*witness) InputRecovered(string, int, string) {}

// killsChildren lists the children of this process.
func killsChildren(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Skip("this kernel does not list the children of a process")
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// line is a line of the ledger.
type line struct {
	pid  int
	what string
	id   int
}

func readLedger(t *testing.T, path string) (lines []line) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for s := range strings.Lines(string(text)) {
		words := strings.Fields(s)
		pid, err := strconv.Atoi(words[0])
		id, err2 := strconv.Atoi(words[len(words)-1])
		if err != nil || err2 != nil {
			t.Fatalf("%q", s)
		}
		lines = append(lines, line{pid, strings.Join(words[1:len(words)-1], " "), id})
	}
	return lines
}

// TestKills kills processes at any moment: in calls, between calls, during a start, in Serve
// and in Ping. Other processes exit, panic, crash and hang at the same time. Then it compares
// the ledgers.
func TestKills(t *testing.T) {
	speed.Landing(t) // TestIsolatedEndsInCalls has the ends that it combines
	number := speed.Pick(t, 0, 100, 1000)
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(kills.LedgerVariable, path)
	w := new(witness)
	top, err := kills.New(kills.Processors{}, pool.Logger(slog.New(w)), pool.Observe(w), pool.DrainTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- top.Run(ctx) }()

	feed := top.Feed(0)
	asked := make(chan int)
	enough := make(chan struct{})
	go func() { // as a caller from outside
		n := 0
		defer func() { asked <- n }()
		for {
			a, err := top.Api().AskQuery(t.Context(), kills.Query{ID: n})
			if err != nil || a.ID != n || a.Process == os.Getpid() {
				t.Errorf("query %d: %+v %v", n, a, err)
				return
			}
			n++
			select {
			case <-enough:
				return
			default:
			}
		}
	}()

	victims := make(map[int]bool)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for len(victims) < number {
		pause := time.Duration(random.IntN(int(20 * time.Millisecond)))
		if len(victims)%50 == 10 { // time for a hang to be noticed
			pause = 2 * time.Second
		}
		select {
		case err := <-ended:
			t.Fatalf("Run has ended: %v", err)
		case <-time.After(pause):
		}
		list := killsChildren(t)
		if len(list) == 0 {
			continue
		}
		victim := list[random.IntN(len(list))]
		if syscall.Kill(victim, syscall.SIGKILL) == nil {
			victims[victim] = true
		}
	}
	close(enough)
	queries := <-asked
	feed.Enough.Store(true)
	<-feed.Done
	settled(t, top, w, victims, path)
	killsAwait(t, "all jobs are handled", func() error {
		s := top.Snapshot()
		if n := int(s.Edges[kills.EdgeStageCollectorResult].Received + s.Faults.DeadLetters); n != feed.Sent {
			return fmt.Errorf("%d of %d", n, feed.Sent)
		}
		return nil
	})
	stop() // drains the queues, without further faults
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := killsChildren(t); len(left) > 0 {
		t.Errorf("processes %v are still there", left)
	}
	check(t, top, w, feed.Sent, queries, victims, readLedger(t, path))
}

// settled waits until all kills were noticed and all failed instances were restarted.
func settled(t *testing.T, top *kills.Topology, w *witness, victims map[int]bool, path string) {
	t.Helper()
	killsAwait(t, "all ends are noticed", func() error {
		noticed := w.blamed()
		lines := readLedger(t, path)
		for _, l := range lines {
			if l.what == "panic" {
				noticed[l.pid] = true // the process has written that it is about to end
			}
		}
		for pid := range victims {
			if !noticed[pid] {
				return fmt.Errorf("that of process %d is not, which wrote %v", pid, of(lines, pid))
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if restarts := int(top.Snapshot().Faults.Restarts); restarts != len(w.failed) {
			return fmt.Errorf("%d have failed, the last of %v, and %d were restarted", len(w.failed), w.failed[len(w.failed)-1], restarts)
		}
		return nil
	})
}

// of returns the last lines of a process.
func of(lines []line, pid int) []line {
	own := slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.pid != pid })
	return own[max(0, len(own)-3):]
}

// killsAwait waits until missing returns nil.
func killsAwait(t *testing.T, what string, missing func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		err := missing()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s: %v", what, err)
		}
	}
}

// blamed are the processes whose end was reported.
func (w *witness) blamed() map[int]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	pids := make(map[int]bool)
	for _, err := range slices.Concat(w.failed, w.notStarted) {
		if exit, ok := errors.AsType[*process.ExitError](err); ok {
			pids[exit.Exit.PID] = true
		}
	}
	return pids
}

// check compares the ledgers.
func check(t *testing.T, top *kills.Topology, w *witness, jobs, queries int, victims map[int]bool, lines []line) {
	t.Helper()
	if len(w.others) > 0 {
		t.Errorf("%d other warnings, the first: %v", len(w.others), w.others[0])
	}
	count := make(map[string]map[int]int) // by action and number
	by := make(map[int]map[string]int)    // by process and action
	for _, l := range lines {
		if count[l.what] == nil {
			count[l.what] = make(map[int]int)
		}
		count[l.what][l.id]++
		if by[l.pid] == nil {
			by[l.pid] = make(map[string]int)
		}
		by[l.pid][l.what]++
	}

	// In the topology each job arrives once, or becomes a dead letter.
	c, m := top.Collector(0), top.Morgue(0)
	for id := range jobs {
		if c.Notes[id] != 1 || c.Results[id]+m.Jobs[id] != 1 {
			t.Errorf("job %d has %d notes, %d results, %d dead letters", id, c.Notes[id], c.Results[id], m.Jobs[id])
		}
	}
	if len(c.Notes) != jobs || len(c.Results)+len(m.Jobs) != jobs || len(m.Others) != 0 || len(c.Early) != 0 {
		t.Errorf("of %d jobs there are %d notes, %d results, %d and %d dead letters; before their note %v", jobs, len(c.Notes), len(c.Results), len(m.Jobs), len(m.Others), c.Early)
	}

	// Effects outside happen at least once, and more often only after the end of a process.
	deaths := len(w.failed) + len(w.notStarted)
	again := 0
	atLeast := func(what string, id int) {
		n := count[what][id]
		again += max(n-1, 0)
		if n == 0 && m.Jobs[id] == 0 || strings.HasPrefix(what, "turn") && n > 2 {
			t.Errorf("%s %d was begun %d times", what, id, n)
		}
	}
	for id := range jobs {
		for _, what := range []string{"job", "question", "verdict"} {
			atLeast(what, id)
		}
		for hops := 1; hops <= kills.Spins; hops++ {
			atLeast(fmt.Sprint("spin", hops), id)
			atLeast(fmt.Sprint("turn", hops), id)
		}
	}
	for id := range queries {
		atLeast("query", id)
	}
	if again > deaths {
		t.Errorf("%d were begun again; %d processes have ended", again, deaths)
	}

	// Sources: all messages that the process knows to be accepted have arrived, and no others were begun.
	for _, l := range lines {
		switch l.what {
		case "extra":
			if n := c.Extras[kills.Extra{Process: l.pid, N: l.id}]; n > 1 {
				t.Errorf("%+v came %d times", l, n)
			}
		case "taken":
			if c.Extras[kills.Extra{Process: l.pid, N: l.id}] != 1 {
				t.Errorf("%+v came %d times", l, c.Extras[kills.Extra{Process: l.pid, N: l.id}])
			}
		}
	}
	for b, n := range c.Beats {
		if n != 1 || b.N > by[b.Process]["beat"] {
			t.Errorf("%+v came %d times of %d", b, n, by[b.Process]["beat"])
		}
		if b.N > 1 && c.Beats[kills.Beat{Process: b.Process, N: b.N - 1}] != 1 {
			t.Errorf("the one before %+v has not come", b)
		}
	}
	for pid, what := range by {
		if n := what["extra"]; n > 0 && c.Extras[kills.Extra{Process: pid, N: n}]+c.Extras[kills.Extra{Process: pid, N: n - 1}] == 0 && n > 1 {
			t.Errorf("of %d that process %d began to send the last two are missing", n, pid)
		}
		if n := what["beat"]; n > 1 && c.Beats[kills.Beat{Process: pid, N: n - 1}] == 0 {
			t.Errorf("of the %d beats of process %d the last two are missing", n, pid)
		}
	}

	// For each edge, sent = handled + dropped by a policy.
	s := top.Snapshot()
	for i, e := range s.Edges {
		if e.Sent != e.Received+e.Dropped || e.Len != 0 || e.Dropped > 0 && kills.EdgeIndex(i) != kills.EdgeStageCollectorSample && kills.EdgeIndex(i) != kills.EdgeEveryStage5ms {
			t.Errorf("%+v", e)
		}
	}
	if n := s.Edges[kills.EdgeStageCollectorSample].Received; int(n) != c.Samples {
		t.Errorf("%d samples were received, of which %d came", n, c.Samples)
	}
	if n := s.Edges[kills.EdgeFeedStageJob].Received; int(n) != jobs {
		t.Errorf("%d jobs were received of %d", n, jobs)
	}

	// The counters match the events.
	if int(s.Faults.Restarts) != len(w.failed) || int(s.Faults.DeadLetters) != len(m.Jobs) || s.Faults.Abandoned != 0 {
		t.Errorf("%+v; %d have failed, %d dead letters", *s.Faults, len(w.failed), len(m.Jobs))
	}
	hung := 0
	for _, err := range slices.Concat(w.failed, w.notStarted) {
		var exit *process.ExitError
		var remote *process.RemoteError
		switch {
		case errors.As(err, &exit):
			own := by[exit.Exit.PID]
			switch {
			case errors.Is(err, pool.ErrHung):
				hung++
				if own["hang"] != 1 {
					t.Errorf("it has not hung: %v", err)
				}
			case !victims[exit.Exit.PID] && own["exit"]+own["crash"] == 0:
				t.Errorf("no fault and no kill has ended it: %v", err)
			}
		case errors.As(err, &remote) && remote.Stack != nil:
		default:
			t.Errorf("unexpected error: %v", err)
		}
	}
	hangs := 0 // some of them were also killed from outside
	for _, own := range by {
		hangs += own["hang"]
	}
	if n := int(s.Faults.HealthCheckKills); n < hung || n > hangs {
		t.Errorf("%+v; of %d that hung %d were killed", *s.Faults, hangs, hung)
	}
	blamed := w.blamed()
	for pid := range victims {
		if !blamed[pid] && by[pid]["panic"] == 0 {
			t.Errorf("the end of process %d was not noticed", pid)
		}
	}
	t.Logf("%d killed, %d failed, %d not started, %d hung, %d jobs, %d queries, %d extras, %d beats, %d begun again, %d dead letters", len(victims), len(w.failed), len(w.notStarted), hung, jobs, queries, len(c.Extras), len(c.Beats), again, len(m.Jobs))
}
