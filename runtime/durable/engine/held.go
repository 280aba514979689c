package engine

import "github.com/topogen/topogen/runtime/durable/protocol"

// held keeps execute messages that no worker can take yet, in order, one for each task.
// They are for any worker of a group, or for one process. A message without a place is
// dropped: the retry of its task sends it again.
type held struct {
	total int
	lines map[lineKey]*line
}

// lineKey is a group, and the process for messages to a single process.
type lineKey struct{ group, pid string }

// A line holds messages in order.
type line struct {
	tasks    []protocol.TaskRef // from head on; the versions are in versions
	head     int
	versions map[string]int64 // of the tasks in the line
}

func newHeld() held { return held{lines: map[lineKey]*line{}} }

func key(r route) lineKey {
	if r.kind == routeUni {
		return lineKey{r.group, r.pid}
	}
	return lineKey{r.group, ""}
}

// add adds a message. It reports false if there is no place.
func (h *held) add(k lineKey, t protocol.TaskRef) bool {
	l := h.lines[k]
	if l != nil {
		if _, ok := l.versions[t.ID]; ok {
			l.versions[t.ID] = t.Version
			return true
		}
	}
	if h.total >= heldTotalMax || l != nil && len(l.versions) >= heldMax {
		return false
	}
	if l == nil {
		l = &line{versions: map[string]int64{}}
		h.lines[k] = l
	}
	if len(l.tasks) == cap(l.tasks) && l.head > 0 { // reuse the places of messages that were taken
		l.tasks = append(l.tasks[:0], l.tasks[l.head:]...)
		l.head = 0
	}
	l.tasks = append(l.tasks, t)
	l.versions[t.ID] = t.Version
	h.total++
	return true
}

// version returns the version of a task in a line.
func (h *held) version(k lineKey, id string) (version int64, ok bool) {
	if l := h.lines[k]; l != nil {
		version, ok = l.versions[id]
	}
	return version, ok
}

// free returns how many messages can be added to a line.
func (h *held) free(k lineKey) int {
	n := heldMax
	if l := h.lines[k]; l != nil {
		n -= len(l.versions)
	}
	return min(n, heldTotalMax-h.total)
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
			t = l.tasks[l.head]
			t.Version = l.versions[t.ID]
			delete(l.versions, t.ID)
			l.tasks[l.head] = protocol.TaskRef{}
			l.head++
			h.total--
			if len(l.versions) == 0 {
				delete(h.lines, k)
			}
			return k.address(), t, true
		}
	}
	return "", t, false
}
