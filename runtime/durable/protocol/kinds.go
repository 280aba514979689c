package protocol

// A kind says which fields the data of a request has, and makes an operation of them.
type kind struct {
	need   fieldSet // must be present
	may    fieldSet // may be absent
	null   bool     // whether fields may be null, which is the same as absent
	action string   // the kind of the requests inside
	// orAction is another kind that the request inside may have, or "".
	orAction string
	build    func(f *fields) Operation
}

func (k *kind) actionProblem() string {
	if k.orAction != "" {
		return "must be " + k.action + " or " + k.orAction
	}
	return "must be " + k.action
}

// taskRef is an element of the tasks of a heartbeat.
var taskRef = kind{need: fieldID | fieldVersion}

// kinds has the fields of each kind of request. It is set in init, because the functions
// that it names read it for the requests inside requests.
var kinds map[string]*kind

func init() {
	kinds = map[string]*kind{
		"promise.get": {need: fieldID, build: func(f *fields) Operation { return PromiseGet{ID: f.id} }},
		"promise.create": {need: fieldID | fieldTimeoutAt, may: fieldParam | fieldTags,
			build: func(f *fields) Operation { return f.promiseCreate() }},
		"promise.settle": {need: fieldID | fieldState, may: fieldValue,
			build: func(f *fields) Operation { return f.promiseSettle() }},
		"promise.register_callback": {need: fieldAwaited | fieldAwaiter,
			build: func(f *fields) Operation { return RegisterCallback{Awaited: f.awaited, Awaiter: f.awaiter} }},
		"promise.register_listener": {need: fieldAwaited | fieldAddress,
			build: func(f *fields) Operation { return RegisterListener{Awaited: f.awaited, Address: f.address} }},
		"promise.search": {may: fieldState | fieldTags | fieldLimit | fieldCursor, null: true,
			build: func(f *fields) Operation {
				return PromiseSearch{State: PromiseState(f.state), Tags: f.tags, Limit: int(f.limit), Cursor: f.cursor}
			}},

		"task.get": {need: fieldID, build: func(f *fields) Operation { return TaskGet{ID: f.id} }},
		"task.create": {need: fieldPID | fieldTTL | fieldAction, action: "promise.create",
			build: func(f *fields) Operation {
				return TaskCreate{PID: f.pid, TTL: f.ttl, Action: f.action.(PromiseCreate)}
			}},
		"task.acquire": {need: fieldID | fieldVersion | fieldPID | fieldTTL,
			build: func(f *fields) Operation {
				return TaskAcquire{ID: f.id, Version: f.version, PID: f.pid, TTL: f.ttl}
			}},
		"task.release": {need: fieldID | fieldVersion,
			build: func(f *fields) Operation { return TaskRelease{ID: f.id, Version: f.version} }},
		"task.fulfill": {need: fieldID | fieldVersion | fieldAction, action: "promise.settle",
			build: func(f *fields) Operation {
				return TaskFulfill{ID: f.id, Version: f.version, Action: f.action.(PromiseSettle)}
			}},
		"task.suspend": {need: fieldID | fieldVersion | fieldActions, action: "promise.register_callback",
			build: func(f *fields) Operation {
				return TaskSuspend{ID: f.id, Version: f.version, Actions: f.actions}
			}},
		"task.fence": {need: fieldID | fieldVersion | fieldAction, action: "promise.create", orAction: "promise.settle",
			build: func(f *fields) Operation { return TaskFence{ID: f.id, Version: f.version, Action: f.action} }},
		"task.heartbeat": {need: fieldPID | fieldTasks,
			build: func(f *fields) Operation { return TaskHeartbeat{PID: f.pid, Tasks: f.tasks} }},
		"task.halt":     {need: fieldID, build: func(f *fields) Operation { return TaskHalt{ID: f.id} }},
		"task.continue": {need: fieldID, build: func(f *fields) Operation { return TaskContinue{ID: f.id} }},
		"task.search": {may: fieldState | fieldLimit | fieldCursor, null: true,
			build: func(f *fields) Operation {
				return TaskSearch{State: TaskState(f.state), Limit: int(f.limit), Cursor: f.cursor}
			}},

		"schedule.get": {need: fieldID, build: func(f *fields) Operation { return ScheduleGet{ID: f.id} }},
		"schedule.create": {need: fieldID | fieldCron | fieldPromiseID | fieldPromiseTimeout, may: fieldPromiseParam | fieldPromiseTags,
			build: func(f *fields) Operation { return f.scheduleCreate() }},
		"schedule.delete": {need: fieldID, build: func(f *fields) Operation { return ScheduleDelete{ID: f.id} }},
		"schedule.search": {may: fieldTags | fieldLimit | fieldCursor, null: true,
			build: func(f *fields) Operation {
				return ScheduleSearch{Tags: f.tags, Limit: int(f.limit), Cursor: f.cursor}
			}},

		"debug.start": {build: func(*fields) Operation { return DebugStart{} }},
		"debug.reset": {build: func(*fields) Operation { return DebugReset{} }},
		"debug.snap":  {build: func(*fields) Operation { return DebugSnap{} }},
		"debug.stop":  {build: func(*fields) Operation { return DebugStop{} }},
		"debug.tick":  {need: fieldTime, build: func(f *fields) Operation { return DebugTick{Time: f.time} }},
	}
}

func (f *fields) promiseCreate() PromiseCreate {
	return PromiseCreate{ID: f.id, TimeoutAt: f.timeoutAt, Param: f.param, Tags: f.tags, Origin: f.origin}
}

func (f *fields) promiseSettle() PromiseSettle {
	return PromiseSettle{ID: f.id, State: PromiseState(f.state), Value: f.value}
}

func (f *fields) scheduleCreate() ScheduleCreate {
	return ScheduleCreate{
		ID: f.id, Cron: f.cron, PromiseID: f.promiseID, PromiseTimeout: f.promiseTimeout,
		PromiseParam: f.param, PromiseTags: f.tags,
	}
}

// Kinds returns the kinds of requests, in no order.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	return names
}
