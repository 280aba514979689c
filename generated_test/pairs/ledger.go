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

// planVariable is the environment variable that passes the plan to child processes.
const planVariable = "PAIRS_PLAN"

// Plan says which methods fail in a run, and how. All processes of a topology have the same plan.
type Plan struct {
	Ledger  string  // the file to which all processes append; "" if there is only one process
	Failure Failure // how the method fails
	Place   string  // the processor whose method fails
	Method  string  // Init, Finish, Close or Revert; "" for handlers, Ping, Serve and Update
	Slow    bool    // few messages fail, because each failure takes long
	Program bool    // a failure ends or stops the whole program, at message At of a sender
	At      int
	Next    bool // the second run with the same store: sources send nothing
}

// plan is the plan and the ledger of the current run. A process runs one topology at a time.
var plan struct {
	Plan
	file     *os.File // nil if the ledger is in memory
	mu       sync.Mutex
	list     []Event      // the ledger in memory
	n        atomic.Int64 // events that this process has recorded
	recovers bool         // the run has ended, and the test recovers the state from the log

	activations map[message]int // calls of the handlers of durable edges
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
	plan.Plan, plan.list, plan.recovers, plan.activations = p, nil, false, make(map[message]int)
	plan.n.Store(0)
	if p.Ledger != "" {
		plan.file, err = os.OpenFile(p.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	}
	return err
}

// openInChild opens the ledger in a child process. Constructors call it, because the main function of
// a child process does not run.
func openInChild() {
	if plan.Plan != (Plan{}) {
		return
	}
	var p Plan
	if err := errors.Join(json.Unmarshal([]byte(os.Getenv(planVariable)), &p), open(p)); err != nil {
		panic(err)
	}
}

// Event is an event of a run, which is one line of the ledger.
type Event struct {
	PID      int
	Kind     Kind
	Where    string // the edge of the message, or the processor
	ID       int
	Instance int // index of the instance that receives the message
	Attempt  int
}

// Kind is the kind of an [Event].
type Kind string

const (
	made     Kind = "made"
	started  Kind = "started" // Init has returned
	sent     Kind = "sent"
	unsure   Kind = "unsure" // the message of an Ask, or along a durable edge, may have been sent
	began    Kind = "began"
	stepped  Kind = "stepped" // the step of a durable function has run
	done     Kind = "done"
	letter   Kind = "letter"
	failed   Kind = "failed" // ID is the id of the message, or 0 for Init, Finish and Close
	replied  Kind = "replied"
	applied  Kind = "applied"  // an update had an outcome without an error
	refused  Kind = "refused"  // an update had an outcome with an error
	upcoming Kind = "upcoming" // an answer with updates that are not committed: Instance is their number, and ID the sum of their ids
	finished Kind = "finished"
	closed   Kind = "closed"
	changed  Kind = "changed" // an attempt got a message that another attempt has changed
)

// lineBytes is the length of a line. It divides the size of a page, so that a process never reads
// only a part of a line.
const lineBytes = 64

func record(kind Kind, where string, id, instance, attempt int) {
	write(Event{os.Getpid(), kind, where, id, instance, attempt})
	n := plan.n.Add(1)
	for _, f := range onEvent {
		f(n)
	}
}

func write(e Event) {
	if plan.file == nil {
		plan.mu.Lock()
		defer plan.mu.Unlock()
		plan.list = append(plan.list, e)
		return
	}
	line := fmt.Sprint(e.PID, " ", e.Kind, " ", e.Where, " ", e.ID, " ", e.Instance, " ", e.Attempt)
	if _, err := fmt.Fprintf(plan.file, "%-*s\n", lineBytes-1, line); err != nil {
		panic(err)
	}
}

// onEvent are called after each event, with the number of events that this process has recorded.
var onEvent []func(n int64)

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
	e.Kind, e.Where = Kind(fields[1]), fields[2]
	for i, n := range map[int]*int{0: &e.PID, 3: &e.ID, 4: &e.Instance, 5: &e.Attempt} {
		var one error
		*n, one = strconv.Atoi(fields[i])
		err = errors.Join(err, one)
	}
	return e, err
}
