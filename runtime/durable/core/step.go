package core

import (
	"sync"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// step is one call of Core.Step: the transaction, the time, and the messages so far.
type step struct {
	tx
	config  *Config
	now     Instant
	effects []Effect
	// occurrences counts the promises that schedules have created.
	occurrences int
	// passed is the latest deadline that the step found passed without the store saying so.
	passed int64
	// gaps are the schedules that were behind, and what they have skipped.
	gaps []protocol.Gap
	// looked has the schedules whose missed occurrences were counted.
	looked map[string]bool
}

var steps = sync.Pool{New: func() any { return new(step) }}

// Step carries out one operation. It reads and writes kv, and returns the answer and the
// messages to send. Operations that only read do not write. An operation that is refused
// (a Status of 400 or more) has written nothing, unless Result.Fault is set: then kv must
// be rolled back.
func (c *Core) Step(kv KV, op protocol.Operation, now Instant) (r protocol.Result, effects []Effect) {
	s := steps.Get().(*step)
	s.kv, s.config, s.now, s.occurrences, s.passed = kv, &c.config, now.valid(), 0, 0
	s.gaps = nil
	clear(s.looked)
	var fault error
	defer func() {
		if fault != nil {
			r, effects = protocol.Result{Status: protocol.Internal, Error: fault.Error(), Fault: fault}, nil
		}
	}()
	defer catch(&fault)
	r = s.carryOut(op)
	r.Passed = s.passed
	effects = s.effects
	s.kv, s.effects = nil, nil
	s.trim()
	steps.Put(s)
	return r, effects
}

func (s *step) carryOut(op protocol.Operation) protocol.Result {
	if refusal := shape(op, s.config.Strict); refusal != "" {
		return fail(protocol.BadRequest, refusal)
	}
	switch op := op.(type) {
	case protocol.PromiseGet:
		return s.promiseGet(op)
	case protocol.PromiseCreate:
		return s.promiseCreate(&op)
	case protocol.PromiseSettle:
		return s.promiseSettle(&op)
	case protocol.RegisterCallback:
		return s.registerCallback(op)
	case protocol.RegisterListener:
		return s.registerListener(op)
	case protocol.PromiseSearch:
		return s.promiseSearch(op)
	case protocol.TaskGet:
		return s.taskGet(op)
	case protocol.TaskCreate:
		return s.taskCreate(&op)
	case protocol.TaskAcquire:
		return s.taskAcquire(op)
	case protocol.TaskRelease:
		return s.taskRelease(op)
	case protocol.TaskFulfill:
		return s.taskFulfill(&op)
	case protocol.TaskSuspend:
		return s.taskSuspend(op)
	case protocol.TaskFence:
		return s.taskFence(op)
	case protocol.TaskHeartbeat:
		return s.taskHeartbeat(op)
	case protocol.TaskHalt:
		return s.taskHalt(op)
	case protocol.TaskContinue:
		return s.taskContinue(op)
	case protocol.TaskSearch:
		return s.taskSearch(op)
	default:
		return s.carryOutOther(op)
	}
}

// carryOutOther has the operations that are not on promises or tasks.
func (s *step) carryOutOther(op protocol.Operation) protocol.Result {
	switch op := op.(type) {
	case protocol.ScheduleGet:
		return s.scheduleGet(op)
	case protocol.ScheduleCreate:
		return s.scheduleCreate(&op)
	case protocol.ScheduleDelete:
		return s.scheduleDelete(op)
	case protocol.ScheduleSearch:
		return s.scheduleSearch(op)
	case Tick:
		return s.tick(op)
	case Delivered:
		return s.delivered(op)
	case SetBack:
		return s.setBack(op)
	case protocol.DebugStart, protocol.DebugStop: // the driver stops and starts its loops
		return protocol.Result{Status: protocol.OK}
	case protocol.DebugReset:
		return s.debugReset()
	case protocol.DebugSnap:
		return s.debugSnap()
	case protocol.DebugTick:
		return s.debugTick(op)
	default:
		return fail(protocol.BadRequest, "the kind of the operation is unknown")
	}
}

func fail(status int, sentence string) protocol.Result {
	return protocol.Result{Status: status, Error: sentence}
}

// send adds a message to send after the commit.
func (s *step) send(address string, m protocol.Message) {
	s.effects = append(s.effects, Effect{Address: address, Message: m})
}

// execute asks for a worker for a pending task.
func (s *step) execute(t *task) {
	s.send(t.address, protocol.Message{Execute: &protocol.TaskRef{ID: t.id, Version: t.version}})
}
