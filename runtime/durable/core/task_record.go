package core

import (
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/wire"
)

// task is the record of a task in the store. It repeats the deadline and the target of
// its promise, which never change, so that most steps on a task need no promise.
type task struct {
	id        string
	state     taskState
	delayed   bool // pending, and due compares with Instant.Wall: the first dispatch has a delay
	resumed   bool // has entries in the table Resumes
	version   int64
	timeoutAt int64
	due       int64 // of the retry, delay or lease; 0 in states without one
	ttl       int64 // while acquired
	address   string
	pid       string // while acquired
}

// taskState is a protocol.TaskState as a number.
type taskState byte

const (
	taskPending taskState = iota
	taskAcquired
	taskSuspended
	taskHalted
	taskFulfilled
	taskStateCount
)

var taskStateNames = [taskStateCount]protocol.TaskState{
	protocol.TaskPending, protocol.TaskAcquired, protocol.TaskSuspended, protocol.TaskHalted, protocol.TaskFulfilled,
}

const (
	stateBits  = 0xf
	delayedBit = 0x10
	resumedBit = 0x20
)

func appendTask(b []byte, t *task) []byte {
	bits := byte(t.state)
	if t.delayed {
		bits |= delayedBit
	}
	if t.resumed {
		bits |= resumedBit
	}
	b = append(b, recordVersion, bits)
	b = wire.AppendUint(b, uint64(t.version))
	b = wire.AppendUint(b, uint64(t.timeoutAt))
	b = wire.AppendString(b, t.address)
	if t.timed() {
		b = wire.AppendUint(b, uint64(t.due))
	}
	if t.state == taskAcquired {
		b = wire.AppendString(wire.AppendUint(b, uint64(t.ttl)), t.pid)
	}
	return b
}

// timed reports whether the task has a timeout.
func (t *task) timed() bool { return t.state == taskPending || t.state == taskAcquired }

// enter changes the state. The fields of the old state's timeout and lease are cleared.
func (t *task) enter(state taskState) {
	t.state, t.delayed, t.due, t.ttl, t.pid = state, false, 0, 0, ""
}

// decode reads a record, and returns why it cannot be read, or "". The task does not
// refer to body.
func (t *task) decode(id string, body []byte) string {
	d := decoder{rest: string(body)}
	if v := d.byte(); v != recordVersion {
		d.fail("the record has an unknown version")
	}
	bits := d.byte()
	*t = task{
		id: id, state: taskState(bits & stateBits), delayed: bits&delayedBit != 0, resumed: bits&resumedBit != 0,
		version: d.number(), timeoutAt: d.number(), address: d.text(),
	}
	if t.state >= taskStateCount || bits&^(stateBits|delayedBit|resumedBit) != 0 || t.delayed && t.state != taskPending {
		d.fail("the task has an unknown state")
	}
	if d.bad == "" && t.timed() {
		t.due = d.number()
	}
	if d.bad == "" && t.state == taskAcquired {
		t.ttl, t.pid = d.number(), d.text()
	}
	return d.end()
}

func decodeTask(id string, body []byte) (*task, string) {
	t := new(task)
	return t, t.decode(id, body)
}

// live reports whether the task's promise is pending at an instant. A task that is not
// live reads as fulfilled.
func (t *task) live(now Instant) bool { return t.state != taskFulfilled && now.Wall < t.timeoutAt }

// live is [task.live] at the time of the step. The answer depends on it.
func (s *step) live(t *task) bool {
	live := t.live(s.now)
	if !live && t.state != taskFulfilled {
		s.passed = max(s.passed, t.timeoutAt)
	}
	return live
}
