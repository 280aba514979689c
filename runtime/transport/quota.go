package transport

// The room of a queue for a peer, for each group and class by itself: one group does not
// take the room of another, nor a snapshot that of the log.
const (
	QueueMessages = 16384     // some milliseconds of a busy group
	QueueBytes    = 128 << 20 // more than a Raft leader has on its way to a follower; package raft checks that at compile time
)

// groupsMax is how many groups and classes a Quota remembers that have nothing
// waiting: far more than a node has groups.
const groupsMax = 1024

// Quota counts what waits for a peer, and says what else may: for whoever writes a
// [Transport]. It is used under a lock of its owner.
type Quota struct {
	messages, bytes int
	use             map[quotaKey]*usage
	last            quotaKey // whose usage was asked for last: mostly the next one's, too
	lastUse         *usage
	waiting         int
}

type quotaKey struct {
	group uint64
	class Class
}

type usage struct{ messages, bytes int }

// NewQuota allows so many messages, and bytes of their payloads, for each group
// and class. One message that has more bytes may wait alone.
func NewQuota(messages, bytes int) Quota {
	return Quota{messages: messages, bytes: bytes, use: make(map[quotaKey]*usage)}
}

// Take reports whether a message may wait, and counts it if so.
func (q *Quota) Take(m *Message) bool {
	u := q.usage(m)
	if u.messages >= q.messages || u.messages > 0 && u.bytes+len(m.Payload) > q.bytes {
		return false
	}
	u.messages++
	u.bytes += len(m.Payload)
	q.waiting++
	return true
}

// Give ends the waiting of messages that Take has counted.
func (q *Quota) Give(messages ...Message) {
	for i := range messages {
		u := q.usage(&messages[i])
		u.messages--
		u.bytes -= len(messages[i].Payload)
	}
	q.waiting -= len(messages)
}

// Waiting is how many messages wait, of all groups and classes.
func (q *Quota) Waiting() int { return q.waiting }

func (q *Quota) usage(m *Message) *usage {
	key := quotaKey{m.Group, m.Class}
	if q.lastUse != nil && q.last == key {
		return q.lastUse
	}
	u := q.use[key]
	if u == nil {
		if len(q.use) >= groupsMax {
			for k, old := range q.use {
				if *old == (usage{}) {
					delete(q.use, k)
				}
			}
		}
		u = new(usage)
		q.use[key] = u
	}
	q.last, q.lastUse = key, u
	return u
}
