package durable

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// A queue decides which of the announced tasks is acquired next. Each task is in the lane
// of its function and key, and the lanes take turns. A queue has no clock and no goroutine.
type queue struct {
	runningMax, waitingMax, lanesMax int

	lanes   map[string]*lane
	items   map[string]*item // that wait, by the id of the task
	taken   map[string]*item // that run
	ready   []*lane          // lanes that can have their turn, in order
	later   laneHeap         // lanes that wait for their rate, and idle lanes until their rate is unused
	running int
	waiting int
	delayed int   // lanes in later that have waiting tasks
	fullest *lane // a lane with many waiting tasks, nearly the most
	most    int   // no lane has more waiting tasks
}

// A lane has the tasks of one function and key.
type lane struct {
	name    string
	limit   Limit
	resumed items // tasks that have run before: the rate does not apply
	first   items
	running int
	// full is the time from which the next Limit.Rate tasks may start at once. Each start
	// moves it by a part of the period.
	full    time.Time
	isReady bool
	delayed bool // in later, with waiting tasks
	index   int  // in later, or -1
	at      time.Time
}

// An item is a task that waits.
type item struct {
	ref   protocol.TaskRef
	lane  *lane
	first bool
}

func newQueue(runningMax, waitingMax int) queue {
	return queue{
		runningMax: runningMax, waitingMax: waitingMax, lanesMax: lanesMax,
		lanes: make(map[string]*lane), items: make(map[string]*item), taken: make(map[string]*item),
	}
}

// add adds a task that was announced. It reports whether there was room: if not, it drops this
// task or one of a key with more tasks. A task that waits already is not added again.
func (q *queue) add(ref protocol.TaskRef, name string, limit Limit, now time.Time) bool {
	if waiting := q.items[ref.ID]; waiting != nil {
		waiting.ref.Version = max(waiting.ref.Version, ref.Version)
		return true
	}
	if it := q.taken[ref.ID]; it != nil && ref.Version <= it.ref.Version {
		return true // announced twice
	}
	q.expire(now)
	l := q.lanes[name]
	full := q.waiting >= q.waitingMax
	if l == nil && len(q.lanes) >= q.lanesMax || full && !q.makeRoom(l) {
		return false
	}
	if l == nil {
		l = &lane{name: name, limit: limit, index: -1}
		q.lanes[name] = l
	}
	it := &item{ref: ref, lane: l, first: ref.Version == 0}
	q.items[ref.ID] = it
	if it.first {
		l.first.push(it)
	} else {
		l.resumed.push(it)
	}
	q.waiting++
	if n := l.waits(); n > q.most {
		q.fullest, q.most = l, n
	}
	q.settle(l, now)
	return !full
}

// makeRoom drops the newest task of a lane that has more waiting tasks than l would have with
// one more. So a key with many tasks does not keep the tasks of other keys out.
func (q *queue) makeRoom(l *lane) bool {
	least := 1
	if l != nil {
		least += l.waits()
	}
	if q.waiting == 0 || q.most <= least {
		return false
	}
	if n := q.fullest.waits(); n <= least || n < q.most-q.most/8 { // to look at all lanes for each task takes too long
		q.fullest, q.most = nil, 0
		for _, other := range q.lanes {
			if n := other.waits(); n > q.most || n == q.most && n > 0 && other.name < q.fullest.name {
				q.fullest, q.most = other, n
			}
		}
		if q.most <= least {
			return false
		}
	}
	delete(q.items, q.fullest.dropNewest().ref.ID)
	q.waiting--
	return true
}

// next returns the next task to acquire, which is then running until done is called.
func (q *queue) next(now time.Time) (*item, bool) {
	q.expire(now)
	for q.running < q.runningMax && len(q.ready) > 0 {
		l := q.ready[0]
		q.ready[0] = nil
		q.ready = q.ready[1:]
		l.isReady = false
		it := l.pop(now)
		if it != nil {
			delete(q.items, it.ref.ID)
			q.taken[it.ref.ID] = it
			q.waiting--
			q.running++
			l.running++
		}
		q.settle(l, now)
		if it != nil {
			return it, true
		}
	}
	return nil, false
}

// done says that a task is not running any longer. started is false if it was not
// acquired: it then does not count against the rate.
func (q *queue) done(it *item, started bool, now time.Time) {
	if q.taken[it.ref.ID] == it {
		delete(q.taken, it.ref.ID)
	}
	l := it.lane
	q.running--
	l.running--
	if !started && it.first && l.limit.Rate > 0 {
		l.full = l.full.Add(-l.interval())
	}
	q.settle(l, now)
}

// drain ends the queue, and returns the tasks that wait. It leaves out
// tasks that wait for their rate: another process would take them for tasks that have run
// before.
func (q *queue) drain() []protocol.TaskRef {
	var refs []protocol.TaskRef
	for _, it := range q.items {
		if !it.first || it.lane.limit.Rate == 0 {
			refs = append(refs, it.ref)
		}
	}
	clear(q.items)
	q.waiting, q.waitingMax = 0, 0
	slices.SortFunc(refs, func(a, b protocol.TaskRef) int { return strings.Compare(a.ID, b.ID) })
	return refs
}

// wake is the time of the next change without a call, and whether there is one.
func (q *queue) wake() (time.Time, bool) {
	if q.delayed == 0 { // idle lanes do not matter
		return time.Time{}, false
	}
	return q.later[0].at, true
}

// settle puts a lane where it belongs: among the ready lanes, to the lanes that wait
// for a time, or nowhere while it waits for done.
func (q *queue) settle(l *lane, now time.Time) {
	if l.index >= 0 {
		heap.Remove(&q.later, l.index)
	}
	if l.delayed {
		l.delayed = false
		q.delayed--
	}
	switch {
	case l.isReady:
	case l.waits() == 0 && l.running > 0:
	case l.waits() == 0 && !now.Before(l.full):
		delete(q.lanes, l.name)
	case l.waits() == 0:
		l.at = l.full // forget the lane when its rate is unused
		heap.Push(&q.later, l)
	case l.limit.Concurrency > 0 && l.running >= l.limit.Concurrency:
	case l.resumed.len() > 0 || l.allowed(now):
		l.isReady = true
		q.ready = append(q.ready, l)
	default:
		l.delayed = true
		q.delayed++
		l.at = l.allowedAt()
		heap.Push(&q.later, l)
	}
}

// expire moves the lanes whose time has come.
func (q *queue) expire(now time.Time) {
	for len(q.later) > 0 && !now.Before(q.later[0].at) {
		q.settle(q.later[0], now)
	}
}

func (l *lane) waits() int { return l.resumed.len() + l.first.len() }

// interval is how much of the period a start uses.
func (l *lane) interval() time.Duration {
	period := l.limit.Period
	if period <= 0 {
		period = time.Second
	}
	return max(period/time.Duration(l.limit.Rate), 1)
}

// allowedAt is the time from which the rate allows another start.
func (l *lane) allowedAt() time.Time {
	return l.full.Add(-time.Duration(l.limit.Rate-1) * l.interval())
}

func (l *lane) allowed(now time.Time) bool {
	return l.limit.Rate <= 0 || !now.Before(l.allowedAt())
}

// pop takes the next task of a lane, if its limits allow one.
func (l *lane) pop(now time.Time) *item {
	switch {
	case l.limit.Concurrency > 0 && l.running >= l.limit.Concurrency:
		return nil
	case l.resumed.len() > 0:
		return l.resumed.pop()
	case l.first.len() == 0 || !l.allowed(now):
		return nil
	}
	if l.limit.Rate > 0 {
		if l.full.Before(now) {
			l.full = now
		}
		l.full = l.full.Add(l.interval())
	}
	return l.first.pop()
}

// dropNewest removes the task that came last. Tasks that have run before stay longer.
func (l *lane) dropNewest() *item {
	if l.first.len() > 0 {
		return l.first.popNewest()
	}
	return l.resumed.popNewest()
}

// items is a queue of items.
type items struct {
	all  []*item
	head int
}

func (q *items) len() int     { return len(q.all) - q.head }
func (q *items) push(i *item) { q.all = append(q.all, i) }
func (q *items) pop() *item {
	i := q.all[q.head]
	q.all[q.head] = nil
	if q.head++; q.head == len(q.all) {
		q.all, q.head = nil, 0
	} else if q.head > 64 && 2*q.head > len(q.all) {
		q.all, q.head = append([]*item(nil), q.all[q.head:]...), 0
	}
	return i
}

func (q *items) popNewest() *item {
	last := len(q.all) - 1
	i := q.all[last]
	q.all[last] = nil
	if q.all = q.all[:last]; q.head == last {
		q.all, q.head = nil, 0
	}
	return i
}

// A laneHeap has lanes, the earliest first.
type laneHeap []*lane

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *laneHeap) Push(x any)        { l := x.(*lane); l.index = len(*h); *h = append(*h, l) }
func (h *laneHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.index = -1
	return l
}
