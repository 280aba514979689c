package protocol

// An Operation is the data of a request, one struct for each kind. [Operation.Kind] is
// the kind on the wire. Each operation can return 400, and each but create 404 if the id does
// not exist. Errors are checked in this order: 400, 404, 422, 409; TaskSuspend checks its task
// (404, 409) before the awaited promises (422).
type Operation interface{ Kind() string }

// Operations on promises.
type (
	// PromiseGet returns a promise.
	PromiseGet struct {
		ID string `json:"id"`
	}
	// PromiseCreate creates a promise, or returns the promise that has the id already, whatever
	// the other fields are. After its deadline it is settled at once, with createdAt = settledAt =
	// timeoutAt.
	PromiseCreate struct {
		ID        string            `json:"id"`
		TimeoutAt int64             `json:"timeoutAt"`
		Param     Value             `json:"param"`
		Tags      map[string]string `json:"tags"`
		// Origin is the origin that the head of the request names, or "".
		Origin string `json:"-"`
	}
	// PromiseSettle settles a promise, or returns the state in which it was settled.
	PromiseSettle struct {
		ID    string       `json:"id"`
		State PromiseState `json:"state"`
		Value Value        `json:"value"`
	}
	// RegisterCallback resumes the task of Awaiter when Awaited is settled, if both are pending. It
	// returns Awaited. 400 for the same promise or another origin; 422 if Awaited is internal, or
	// Awaiter does not exist or has no target.
	RegisterCallback struct {
		Awaited string `json:"awaited"`
		Awaiter string `json:"awaiter"`
	}
	// RegisterListener sends one unblock message to Address when Awaited is settled, if it is pending.
	// It returns Awaited. 422 if it is internal.
	RegisterListener struct {
		Awaited string `json:"awaited"`
		Address string `json:"address"`
	}
	// PromiseSearch lists promises that have all given tags, in the order of ids. With a cursor there
	// may be more, even if the page is short or empty.
	PromiseSearch struct {
		State  PromiseState      `json:"state,omitempty"`
		Tags   map[string]string `json:"tags,omitempty"`
		Limit  int               `json:"limit,omitempty"`
		Cursor string            `json:"cursor,omitempty"`
	}
)

// Operations on tasks.
type (
	// TaskGet returns a task.
	TaskGet struct {
		ID string `json:"id"`
	}
	// TaskCreate creates a promise with a task that PID has acquired for TTL milliseconds, at version
	// 1. If the promise exists, a pending task is acquired, and a fulfilled one returned. 400 without
	// a target or with a delay; 409 if it is acquired, suspended or halted; 422 if there is no task.
	TaskCreate struct {
		PID    string
		TTL    int64
		Action PromiseCreate
	}
	// TaskAcquire gives a pending task to PID for TTL milliseconds. The version is one higher, and
	// resumes is cleared. 409 if it is not pending at Version.
	TaskAcquire struct {
		ID      string `json:"id"`
		Version int64  `json:"version"`
		PID     string `json:"pid"`
		TTL     int64  `json:"ttl"`
	}
	// TaskRelease makes an acquired task pending at the same version. This and the operations below
	// with a version return 409 if the task is not acquired at Version.
	TaskRelease struct {
		ID      string `json:"id"`
		Version int64  `json:"version"`
	}
	// TaskFulfill settles the promise of an acquired task. Action.ID equals ID.
	TaskFulfill struct {
		ID      string
		Version int64
		Action  PromiseSettle
	}
	// TaskSuspend suspends an acquired task until one of the awaited promises is settled. If one is
	// settled already, the status is 300, the task stays acquired and nothing is registered. 400 for
	// an empty list, or if the task awaits its own promise; 422 if a promise does not exist or is
	// internal.
	TaskSuspend struct {
		ID      string
		Version int64
		Actions []RegisterCallback
	}
	// TaskFence carries out Action if the task is still acquired, and returns its result. Action is
	// a [PromiseCreate] or a [PromiseSettle] of another id.
	TaskFence struct {
		ID      string
		Version int64
		Action  Operation
	}
	// TaskHeartbeat begins the leases of those tasks again that PID has at their versions. The others
	// have no effect.
	TaskHeartbeat struct {
		PID   string    `json:"pid"`
		Tasks []TaskRef `json:"tasks"`
	}
	// TaskHalt stops the dispatch of a task in any state but fulfilled (409).
	TaskHalt struct {
		ID string `json:"id"`
	}
	// TaskContinue makes a halted task pending. 409 if it is not halted.
	TaskContinue struct {
		ID string `json:"id"`
	}
	// TaskSearch lists tasks.
	TaskSearch struct {
		State  TaskState `json:"state,omitempty"`
		Limit  int       `json:"limit,omitempty"`
		Cursor string    `json:"cursor,omitempty"`
	}
	// A TaskRef names a task at a version.
	TaskRef struct {
		ID      string `json:"id"`
		Version int64  `json:"version"`
	}
)

// Operations on schedules.
type (
	// ScheduleGet returns a schedule.
	ScheduleGet struct {
		ID string `json:"id"`
	}
	// ScheduleCreate creates a schedule, or returns the schedule that has the id already.
	ScheduleCreate struct {
		ID             string            `json:"id"`
		Cron           string            `json:"cron"`
		PromiseID      string            `json:"promiseId"`
		PromiseTimeout int64             `json:"promiseTimeout"`
		PromiseParam   Value             `json:"promiseParam"`
		PromiseTags    map[string]string `json:"promiseTags"`
	}
	// ScheduleDelete deletes a schedule. The promises that it has created stay.
	ScheduleDelete struct {
		ID string `json:"id"`
	}
	// ScheduleSearch lists schedules.
	ScheduleSearch struct {
		Tags   map[string]string `json:"tags,omitempty"`
		Limit  int               `json:"limit,omitempty"`
		Cursor string            `json:"cursor,omitempty"`
	}
)

// Operations of the debug interface. A server refuses them with 403 unless it was
// started for debugging.
type (
	DebugStart struct{} // stops the background loops
	DebugReset struct{} // deletes everything
	DebugSnap  struct{} // returns everything
	DebugStop  struct{} // starts the background loops
	DebugTick  struct {
		Time int64 `json:"time"`
	} // processes what is due at Time
)

func (PromiseGet) Kind() string       { return "promise.get" }
func (PromiseCreate) Kind() string    { return "promise.create" }
func (PromiseSettle) Kind() string    { return "promise.settle" }
func (RegisterCallback) Kind() string { return "promise.register_callback" }
func (RegisterListener) Kind() string { return "promise.register_listener" }
func (PromiseSearch) Kind() string    { return "promise.search" }
func (TaskGet) Kind() string          { return "task.get" }
func (TaskCreate) Kind() string       { return "task.create" }
func (TaskAcquire) Kind() string      { return "task.acquire" }
func (TaskRelease) Kind() string      { return "task.release" }
func (TaskFulfill) Kind() string      { return "task.fulfill" }
func (TaskSuspend) Kind() string      { return "task.suspend" }
func (TaskFence) Kind() string        { return "task.fence" }
func (TaskHeartbeat) Kind() string    { return "task.heartbeat" }
func (TaskHalt) Kind() string         { return "task.halt" }
func (TaskContinue) Kind() string     { return "task.continue" }
func (TaskSearch) Kind() string       { return "task.search" }
func (ScheduleGet) Kind() string      { return "schedule.get" }
func (ScheduleCreate) Kind() string   { return "schedule.create" }
func (ScheduleDelete) Kind() string   { return "schedule.delete" }
func (ScheduleSearch) Kind() string   { return "schedule.search" }
func (DebugStart) Kind() string       { return "debug.start" }
func (DebugReset) Kind() string       { return "debug.reset" }
func (DebugSnap) Kind() string        { return "debug.snap" }
func (DebugStop) Kind() string        { return "debug.stop" }
func (DebugTick) Kind() string        { return "debug.tick" }
