package core

import (
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// PromiseStates has an entry (class, id) for each promise that is not resolved. Most
// promises of a store are resolved in the end, so for them the table Promises is the
// index. Pending promises with and without a task are two classes, so that the first is
// also the index of the tasks that are not fulfilled.
const (
	classTask     = 'a' // pending, with a task
	classPending  = 'b' // pending, without a task
	classRejected = 'c'
	classCanceled = 'd'
	classTimedout = 'e'
)

// class returns the class of a promise by its stored state, and false if it has no entry.
func (h promiseHead) class() (byte, bool) {
	switch h.state {
	case pending:
		if h.flags&targeted != 0 {
			return classTask, true
		}
		return classPending, true
	case rejected:
		return classRejected, true
	case canceled:
		return classCanceled, true
	case timedout:
		return classTimedout, true
	}
	return 0, false
}

func (x *tx) markState(p *promise) {
	if class, ok := p.class(); ok {
		x.key = append(append(x.key[:0], class), p.id...)
		x.mark(PromiseStates, x.key)
	}
}

func (x *tx) unmarkState(p *promise) {
	if class, ok := p.class(); ok {
		x.key = append(append(x.key[:0], class), p.id...)
		x.kv.Delete(PromiseStates, x.key)
	}
}

func (x *tx) markTags(p *promise) {
	for key, value := range p.tags {
		if tagIndexed(p.id, key, value) {
			x.key = append(tagPrefix(x.key[:0], key, value), p.id...)
			x.mark(PromiseTags, x.key)
		}
	}
}

// tagIndexed reports whether PromiseTags has an entry for a tag of a promise. The tags of
// the call tree need none where the id of the promise says the same: then the search
// looks at the ids. The other tags of the protocol have few values, so that an index
// would not help.
func tagIndexed(id, key, value string) bool {
	switch key {
	case protocol.TagBranch:
		return id != value // the descendants of a branch are too many to look at all ids
	case protocol.TagOrigin, protocol.TagParent:
		return !extends(id, value)
	case protocol.TagSchedule:
		return true
	}
	return !strings.HasPrefix(key, "resonate:")
}
