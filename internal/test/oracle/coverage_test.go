package oracle

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// coverage counts what happens in sequences: the responses of each kind with each status,
// the changes of tasks, and messages. A generator whose requests are all refused would
// prove nothing.
type coverage struct {
	mu     *sync.Mutex
	counts map[string]int
}

func newCoverage() coverage { return coverage{new(sync.Mutex), map[string]int{}} }

func (c coverage) add(outcome string) {
	if c.counts == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[outcome]++
}

// response adds a response.
func (c coverage) response(response []byte) {
	c.add(fmt.Sprintf("%s %d", kindOf(response), statusOf(response)))
}

// changes adds what a step has changed.
func (c coverage) changes(cause string, before, after *Server, sent []Sent) {
	if c.counts == nil {
		return
	}
	for id, t := range after.tasks {
		old, exists := before.tasks[id]
		if !exists {
			old.State = "no task"
		}
		if t.State != old.State {
			c.add(fmt.Sprintf("%s: %s to %s", cause, old.State, t.State))
		}
		if len(t.Resumes) > len(old.Resumes) {
			c.add(fmt.Sprintf("resume of a task that is %s", old.State))
		}
		if old.delay != nil && t.retry != nil {
			c.add("end of a delay")
		}
		if old.retry != nil && t.retry != nil && *old.retry != *t.retry {
			c.add("retry")
		}
	}
	for _, s := range sent {
		if s.Dropped {
			c.add("unblock that is dropped")
		}
	}
}

// missing returns the outcomes of the table that no response had.
func (c coverage) missing() []string {
	var all []string
	for kind, statuses := range outcomes {
		for _, status := range statuses {
			if outcome := fmt.Sprintf("%s %d", kind, status); c.counts[outcome] == 0 {
				all = append(all, outcome)
			}
		}
	}
	for _, change := range changes {
		if c.counts[change] == 0 {
			all = append(all, change)
		}
	}
	slices.Sort(all)
	return all
}

func (c coverage) String() (text string) {
	for _, outcome := range slices.Sorted(maps.Keys(c.counts)) {
		text += fmt.Sprintf("%7d %s\n", c.counts[outcome], outcome)
	}
	return text
}

// outcomes are the statuses that each kind can have, from the table.
var outcomes = map[string][]int{
	"promise.get":               {200, 400, 404},
	"promise.create":            {200, 400},
	"promise.settle":            {200, 400, 404},
	"promise.register_callback": {200, 400, 404, 422},
	"promise.register_listener": {200, 400, 404, 422},
	"promise.search":            {200, 400},
	"task.get":                  {200, 400, 404},
	"task.create":               {200, 400, 409, 422},
	"task.acquire":              {200, 400, 404, 409},
	"task.release":              {200, 400, 404, 409},
	"task.fulfill":              {200, 400, 404, 409},
	"task.suspend":              {200, 300, 400, 404, 409, 422},
	"task.fence":                {200, 400, 404, 409},
	"task.heartbeat":            {200, 400},
	"task.halt":                 {200, 400, 404, 409},
	"task.continue":             {200, 400, 404, 409},
	"task.search":               {200, 400},
	"schedule.get":              {200, 400, 404},
	"schedule.create":           {200, 400},
	"schedule.delete":           {200, 400, 404},
	"schedule.search":           {200, 400},
	"debug.start":               {200},
	"debug.reset":               {200},
	"debug.tick":                {200, 400},
	"debug.snap":                {200},
	"debug.stop":                {200},
}

// changes are the changes that sequences must reach.
var changes = []string{
	"promise.create: no task to pending", "promise.create: no task to fulfilled",
	"task.create: no task to acquired", "task.create: no task to fulfilled", "task.create: pending to acquired",
	"task.fence: no task to pending", "task.fence: pending to fulfilled", "task.fence: suspended to pending",
	"task.acquire: pending to acquired", "task.release: acquired to pending", "task.fulfill: acquired to fulfilled",
	"task.fulfill: suspended to pending", "task.suspend: acquired to suspended", "task.continue: halted to pending",
	"task.halt: pending to halted", "task.halt: acquired to halted", "task.halt: suspended to halted",
	"promise.settle: pending to fulfilled", "promise.settle: acquired to fulfilled", "promise.settle: suspended to fulfilled",
	"promise.settle: halted to fulfilled", "promise.settle: suspended to pending",
	"tick: no task to pending", "tick: no task to fulfilled", "tick: acquired to pending", "tick: suspended to pending",
	"tick: pending to fulfilled", "tick: acquired to fulfilled", "tick: suspended to fulfilled", "tick: halted to fulfilled",
	"resume of a task that is pending", "resume of a task that is acquired", "resume of a task that is halted",
	"resume of a task that is suspended", "end of a delay", "retry", "unblock that is dropped",
	"crash that loses promises", "occurrences that are skipped",
}
