package border

import (
	"sync"
	"sync/atomic"
)

// lostMessages are the messages of a pair that entered no queue, for example because they
// cannot be decoded. The sending node learns how many messages were handled, counted from the
// first one. So a lost message counts when all messages before it were handled.
type lostMessages struct {
	any     atomic.Bool // few pairs have lost a message, so others need no lock
	mu      sync.Mutex
	counted uint64    // number of lost messages with no message before them that was not handled
	later   []lostRun // the others, oldest first: at most one for each message in a queue
}

// lostRun are n lost messages that follow each other, behind a number of messages that entered
// a queue.
type lostRun struct{ behind, n uint64 }

// add adds a message that was lost behind a number of messages that entered a queue.
func (l *lostMessages) add(behind uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.later) - 1; last >= 0 && l.later[last].behind == behind {
		l.later[last].n++
	} else {
		l.later = append(l.later, lostRun{behind, 1})
	}
	l.any.Store(true)
}

// upTo returns how many messages were lost before the first message that was not handled, if so
// many messages of the queues were handled.
func (l *lostMessages) upTo(handled uint64) uint64 {
	if !l.any.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.later) > 0 && l.later[0].behind <= handled {
		l.counted += l.later[0].n
		l.later = l.later[1:]
	}
	return l.counted
}
