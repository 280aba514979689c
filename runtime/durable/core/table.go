package core

import "fmt"

// The tables of a store. The numbers and the names of [Table.String] are part of the
// format on disk: they never change, and new tables get new numbers.
const (
	// Meta is for the driver of the core, for example for its clocks. The core neither
	// reads nor writes it, and debug.reset leaves it as it is.
	Meta Table = iota
	Promises
	PromiseTimeouts // of pending promises that are external
	PromiseStates   // index of promises by state
	PromiseTags     // index of promises by tag
	Callbacks       // tasks to resume, by promise
	Listeners       // addresses to notify, by promise
	Tasks
	TaskTimeouts // retries of pending tasks and leases of acquired tasks
	TaskDelays   // first dispatches of pending tasks that have a delay
	Resumes      // settled promises that a task has not seen yet
	Schedules
	ScheduleTimes
	Outbox // unblock messages that no connection took yet
	OutboxSizes
	OutboxAges

	// TableCount is the number of tables. All tables are below it.
	TableCount
)

var tableNames = [TableCount]string{
	"meta", "promises", "promise-timeouts", "promise-states", "promise-tags", "callbacks", "listeners",
	"tasks", "task-timeouts", "task-delays", "resumes", "schedules", "schedule-times",
	"outbox", "outbox-sizes", "outbox-ages",
}

// String returns the name of the table in a store.
func (t Table) String() string {
	if t < TableCount {
		return tableNames[t]
	}
	return fmt.Sprintf("table %d", uint8(t))
}
