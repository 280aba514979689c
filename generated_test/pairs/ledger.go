package pairs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// planVariable is the environment variable with the plan, for child processes.
const planVariable = "PAIRS_PLAN"

// Plan says what the handlers of a run do. The processes of a topology share it.
type Plan struct {
	Ledger  string  // the file to which all processes append; "" if there is one process
	Failure Failure // what fails, in Place
	Place   string  // a processor
	Method  string  // "" for its handlers, or Init, Finish or Close
	Slow    bool    // a failure takes long, so that few messages fail
}

// plan is the plan of the run. Tests run one topology at a time in a process.
var plan struct {
	Plan
	file     *os.File // nil if the ledger is in memory
	mu       sync.Mutex
	list     []Event      // the ledger in memory
	n        atomic.Int64 // events that this process has recorded
	recovers bool         // the run has ended, and the state machine reads its log
}

// begin opens the ledger of a run.
func begin(t *testing.T, p Plan) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if p.Ledger != "" {
		err = os.WriteFile(p.Ledger, nil, 0o600)
	}
	if err := errors.Join(err, os.Setenv(planVariable, string(text)), open(p)); err != nil {
		t.Fatal(err)
	}
}

func open(p Plan) (err error) {
	if plan.file != nil {
		plan.file.Close()
		plan.file = nil
	}
	plan.Plan, plan.list, plan.recovers = p, nil, false
	plan.n.Store(0)
	if p.Ledger != "" {
		plan.file, err = os.OpenFile(p.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	}
	return err
}

// openInChild opens the ledger in a child process, whose main does not run.
func openInChild() {
	if plan.Plan != (Plan{}) {
		return
	}
	var p Plan
	if err := errors.Join(json.Unmarshal([]byte(os.Getenv(planVariable)), &p), open(p)); err != nil {
		panic(err)
	}
}

// Event is a line of the ledger.
type Event struct {
	PID      int
	What     What
	Where    string // the edge of a message, or a processor
	ID       int
	Instance int // that receives the message
	Attempt  int
}

// What happened.
type What string

const (
	made     What = "made"
	started  What = "started" // Init has returned
	sent     What = "sent"
	unsure   What = "unsure" // an Ask that may have been sent
	began    What = "began"
	done     What = "done"
	letter   What = "letter"
	failed   What = "failed" // ID is that of the message, or 0 for another method
	replied  What = "replied"
	applied  What = "applied" // an outcome without an error
	refused  What = "refused" // an outcome with an error
	finished What = "finished"
	closed   What = "closed"
	changed  What = "changed" // an attempt got a message that another one has changed
)

// lineBytes is the length of a line. It divides the length of a page, so that no process sees a
// part of a line.
const lineBytes = 64

func record(what What, where string, id, instance, attempt int) {
	write(Event{os.Getpid(), what, where, id, instance, attempt})
	if n := plan.n.Add(1); onEvent != nil {
		onEvent(n)
	}
}

func write(e Event) {
	if plan.file == nil {
		plan.mu.Lock()
		defer plan.mu.Unlock()
		plan.list = append(plan.list, e)
		return
	}
	line := fmt.Sprint(e.PID, " ", e.What, " ", e.Where, " ", e.ID, " ", e.Instance, " ", e.Attempt)
	if _, err := fmt.Fprintf(plan.file, "%-*s\n", lineBytes-1, line); err != nil {
		panic(err)
	}
}

// onEvent is called with the number of events that this process has recorded.
var onEvent func(n int64)

// read returns the events of the ledger.
func read() ([]Event, error) {
	if plan.file == nil {
		plan.mu.Lock()
		defer plan.mu.Unlock()
		return slices.Clone(plan.list), nil
	}
	text, err := os.ReadFile(plan.Ledger)
	if err != nil {
		return nil, err
	}
	events := make([]Event, 0, len(text)/lineBytes)
	for line := range strings.Lines(string(text)) {
		e, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func parse(line string) (e Event, err error) {
	fields := strings.Fields(line)
	if len(fields) != 6 {
		return e, errors.New("not an event")
	}
	e.What, e.Where = What(fields[1]), fields[2]
	for i, n := range map[int]*int{0: &e.PID, 3: &e.ID, 4: &e.Instance, 5: &e.Attempt} {
		var one error
		*n, one = strconv.Atoi(fields[i])
		err = errors.Join(err, one)
	}
	return e, err
}
