package protocol

// A Result is the answer to an operation: the status and the data of a response.
// A Status below 400 comes with the fields that the kind of the operation has, every
// other Status with Error.
type Result struct {
	Status int
	Error  string // a sentence, if Status is 400 or more

	Promise   *Promise
	Task      *Task
	Schedule  *Schedule
	Preload   []Promise // the other promises of the task's branch
	Action    *Result   // of task.fence
	Promises  []Promise // of promise.search
	Tasks     []Task    // of task.search
	Schedules []Schedule
	Cursor    string    // of a search with more results
	Snapshot  *Snapshot // of debug.snap

	// The following is for the driver of the core and not on the wire.

	// More says that more timeouts are due, after core.Tick and debug.tick.
	More bool
	// Occurrences is how many promises schedules have created, after core.Tick and
	// debug.tick.
	Occurrences int
	// Gaps are the occurrences of schedules that were skipped, after core.Tick and debug.tick.
	Gaps []Gap
	// Passed is the latest deadline on which the answer depends and which has passed although
	// the store does not say so. 0: there is none. A driver stores a time at or after it
	// before it answers, because a later step must not have an earlier time.
	Passed int64
	// Fault says that the store is corrupt (*core.CorruptError). Status is 500. The
	// transaction must be rolled back.
	Fault error
}

// A Gap is a time whose occurrences a schedule has skipped, because it has missed too many.
type Gap struct {
	Schedule string
	From, To int64 // the first occurrence that was skipped, and the first occurrence after the gap
}

// Statuses of results. They are the statuses of HTTP with the same numbers.
const (
	OK            = 200
	Redirect      = 300 // task.suspend: an awaited promise is settled already
	BadRequest    = 400
	Unauthorized  = 401
	Forbidden     = 403
	NotFound      = 404
	Conflict      = 409
	Unprocessable = 422
	TooMany       = 429
	Internal      = 500
	Unavailable   = 503
)

// A Snapshot is everything that a store contains, for debug.snap.
type Snapshot struct {
	Promises        []Promise          `json:"promises"`
	PromiseTimeouts []PromiseTimeout   `json:"promiseTimeouts"`
	Callbacks       []RegisterCallback `json:"callbacks"`
	Listeners       []Listener         `json:"listeners"`
	Tasks           []Task             `json:"tasks"`
	TaskTimeouts    []TaskTimeout      `json:"taskTimeouts"`
	Messages        []Envelope         `json:"messages"`
}

type (
	PromiseTimeout struct {
		ID      string `json:"id"`
		Timeout int64  `json:"timeout"`
	}
	// A TaskTimeout is a retry (Type 0) or a lease (Type 1).
	TaskTimeout struct {
		ID      string `json:"id"`
		Type    int    `json:"type"`
		Timeout int64  `json:"timeout"`
	}
	Listener struct {
		ID      string `json:"id"`
		Address string `json:"address"`
	}
	// An Envelope is a message and the address to which it goes.
	Envelope struct {
		Address string  `json:"address"`
		Message Message `json:"message"`
	}
)

// A Message goes to a worker or a listener: exactly one of Execute and Unblock is set.
type Message struct {
	Execute *TaskRef // a task to acquire, at this version
	Unblock *Promise // a promise that was settled
}
