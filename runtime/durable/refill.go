package durable

import (
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// refill is the state of the search for tasks whose messages were dropped. The server would
// announce them again only when its retry timeout has passed.
type refill struct {
	wanted  bool   // a message was dropped since the search began
	running bool   // a page is being read
	cursor  string // of the next page; "": the first
}

// refillPage is how many pending tasks are read at once, and at most as many as there is room
// for.
const refillPage = 1000

// wantsRefill reports whether a page must be read, and marks it as being read. The caller
// holds the lock.
func (w *Worker) wantsRefill() bool {
	r := &w.refill
	if w.config.Manual || w.stopping.Load() || r.running || !r.wanted && r.cursor == "" || w.queue.waiting > w.config.Waiting/2 {
		return false
	}
	if r.cursor == "" {
		r.wanted = false
	}
	r.running = true
	return true
}

// readPending queues a page of the group's pending tasks. A task that another worker has
// in its queue too is acquired by one of them.
func (w *Worker) readPending() {
	w.mu.Lock()
	search := protocol.TaskSearch{State: protocol.TaskPending, Limit: min(refillPage, w.config.Waiting/2+1), Cursor: w.refill.cursor}
	w.mu.Unlock()
	result, err := w.do(w.ctx, search)
	if err != nil || result.Status != protocol.OK { // the retry of the server remains
		result = protocol.Result{}
	}
	for _, t := range result.Tasks {
		if p, err := w.promise(w.ctx, t.ID); err == nil && w.isDue(p) {
			w.enqueue(protocol.TaskRef{ID: t.ID, Version: t.Version}, p)
		}
	}
	w.mu.Lock()
	w.refill.running, w.refill.cursor = false, result.Cursor
	w.mu.Unlock()
	w.pump()
}

// isDue reports whether a pending task is for the group of this worker, and not delayed.
func (w *Worker) isDue(p *protocol.Promise) bool {
	delay, err := strconv.ParseInt(p.Tags[protocol.TagDelay], 10, 64)
	if err == nil && w.now().UnixMilli() < delay {
		return false
	}
	target := p.Tags[protocol.TagTarget]
	return p.State == protocol.Pending && (target == w.target || strings.HasPrefix(target, w.target+"/"))
}
