package engine

import (
	"container/list"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// held keeps execute messages that no worker can take yet, in order, one for each task.
// They are for any worker of a group, or for one process. A message without a place is
// dropped: the retry of its task sends it again. A message is removed when its task does
// not wait any longer.
type held struct {
	lines map[lineKey]*line
	tasks map[string]*list.Element // of all lines, by id; the values are *heldTask

	lineMax, totalMax int // heldMax and heldTotalMax, or less in tests
}

// lineKey is a group, and the process for messages to a single process.
type lineKey struct{ group, pid string }

// A line holds messages in order.
type line struct {
	key lineKey
	list.List
}

// A heldTask is the message of a task.
type heldTask struct {
	task protocol.TaskRef
	line *line
}

func newHeld() held {
	return held{map[lineKey]*line{}, map[string]*list.Element{}, heldMax, heldTotalMax}
}

func key(r route) lineKey {
	if r.kind == routeUni {
		return lineKey{r.group, r.pid}
	}
	return lineKey{r.group, ""}
}

// add adds a message. It reports false if there is no place.
func (h *held) add(k lineKey, t protocol.TaskRef) bool {
	if e := h.tasks[t.ID]; e != nil {
		if held := e.Value.(*heldTask); held.line.key == k {
			held.task.Version = t.Version
			return true
		}
		h.remove(t.ID) // the task was deleted, and created again with another address
	}
	if h.free(k) <= 0 {
		return false
	}
	l := h.lines[k]
	if l == nil {
		l = &line{key: k}
		h.lines[k] = l
	}
	h.tasks[t.ID] = l.PushBack(&heldTask{t, l})
	return true
}

// version returns the version of a task whose message is held.
func (h *held) version(id string) (version int64, ok bool) {
	if e := h.tasks[id]; e != nil {
		return e.Value.(*heldTask).task.Version, true
	}
	return 0, false
}

// free returns how many messages can be added to a line.
func (h *held) free(k lineKey) int {
	n := h.lineMax
	if l := h.lines[k]; l != nil {
		n -= l.Len()
	}
	return min(n, h.totalMax-len(h.tasks))
}

// address returns an address that has the route of the line.
func (k lineKey) address() string {
	if k.pid != "" {
		return "poll://uni@" + k.group + "/" + k.pid
	}
	return "poll://any@" + k.group
}

// take removes the oldest message for a process: one for it alone, or one for its group.
func (h *held) take(group, pid string) (address string, t protocol.TaskRef, ok bool) {
	for _, k := range [...]lineKey{{group, pid}, {group, ""}} {
		if l := h.lines[k]; l != nil {
			t = l.Front().Value.(*heldTask).task
			h.remove(t.ID)
			return k.address(), t, true
		}
	}
	return "", t, false
}

// remove removes the message of a task. It reports false if there is none.
func (h *held) remove(id string) bool {
	e := h.tasks[id]
	if e == nil {
		return false
	}
	delete(h.tasks, id)
	l := e.Value.(*heldTask).line
	if l.Remove(e); l.Len() == 0 {
		delete(h.lines, l.key)
	}
	return true
}
