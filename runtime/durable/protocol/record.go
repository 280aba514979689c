package protocol

// Version is the version of the protocol that requests must name.
const Version = "2026-04-01"

// A PromiseState is the state of a promise.
type PromiseState string

const (
	Pending         PromiseState = "pending"
	Resolved        PromiseState = "resolved"
	Rejected        PromiseState = "rejected"
	RejectedCancel  PromiseState = "rejected_canceled"
	RejectedTimeout PromiseState = "rejected_timedout"
)

// A TaskState is the state of a task.
type TaskState string

const (
	TaskPending   TaskState = "pending"
	TaskAcquired  TaskState = "acquired"
	TaskSuspended TaskState = "suspended"
	TaskHalted    TaskState = "halted"
	TaskFulfilled TaskState = "fulfilled"
)

// A Value is the parameter or the result of a promise. Data is opaque text. A nil Data
// differs from an empty one, because an SDK gets back what it sent.
type Value struct {
	Headers map[string]string `json:"headers,omitempty"`
	Data    *string           `json:"data,omitempty"`
}

// A Promise is the record of a promise, as responses and messages show it. Times are
// milliseconds since 1970. SettledAt is nil while the promise is pending.
type Promise struct {
	ID        string            `json:"id"`
	State     PromiseState      `json:"state"`
	Param     Value             `json:"param"`
	Value     Value             `json:"value"`
	Tags      map[string]string `json:"tags"`
	TimeoutAt int64             `json:"timeoutAt"`
	CreatedAt int64             `json:"createdAt"`
	SettledAt *int64            `json:"settledAt,omitempty"`
}

// A Task is the record of a task, as responses show it. TTL (milliseconds) and PID are
// present while the task is acquired. Resumes lists the settled promises that the task
// has not seen yet.
type Task struct {
	ID      string    `json:"id"`
	State   TaskState `json:"state"`
	Version int64     `json:"version"`
	Resumes []string  `json:"resumes"`
	TTL     *int64    `json:"ttl,omitempty"`
	PID     *string   `json:"pid,omitempty"`
}

// A Schedule is the record of a schedule, as responses show it.
type Schedule struct {
	ID             string            `json:"id"`
	Cron           string            `json:"cron"`
	PromiseID      string            `json:"promiseId"`
	PromiseTimeout int64             `json:"promiseTimeout"`
	PromiseParam   Value             `json:"promiseParam"`
	PromiseTags    map[string]string `json:"promiseTags"`
	CreatedAt      int64             `json:"createdAt"`
	NextRunAt      int64             `json:"nextRunAt"`
	LastRunAt      *int64            `json:"lastRunAt,omitempty"`
}

// Names of the tags that the protocol gives a meaning.
const (
	TagTarget   = "resonate:target"   // an address: the promise gets a task
	TagTimer    = "resonate:timer"    // "true": resolved at its deadline, not rejected
	TagDelay    = "resonate:delay"    // milliseconds since 1970: the first dispatch
	TagScope    = "resonate:scope"    // "global" or "local"
	TagExternal = "resonate:external" // "true": other programs may wait for the promise
	TagOrigin   = "resonate:origin"   // the id of the root of the call tree
	TagBranch   = "resonate:branch"   // the id of the execution that created the promise
	TagParent   = "resonate:parent"   // the id of the caller
	TagSchedule = "resonate:schedule" // the id of the schedule that created the promise
)

// Target is the address of any worker of a group.
func Target(group string) string { return "poll://any@" + group }
