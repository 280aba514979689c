package transport

// The default room of a queue for a peer, separate for each group and class. So a group
// cannot use up the room of another one, and a snapshot cannot use up the room of the
// log.
const (
	QueueMessages = 16384     // some milliseconds of a busy group
	QueueBytes    = 128 << 20 // more than a Raft leader has in flight to a follower; package raft checks this at compile time
)

// groupsMax is how many idle groups and classes a Quota remembers: far more than a node
// has groups.
const groupsMax = 1024

// Quota counts the queued messages for a peer and limits them, for implementations of
// [Transport]. The owner's lock must protect it.
type Quota struct {
	messages, bytes int
	use             map[quotaKey]*usage
	last            quotaKey // the last key, which is often the next one, too
	lastUse         *usage
	waiting         int
}

type quotaKey struct {
	group uint64
	class Class
}

type usage struct{ messages, bytes int }

// NewQuota returns a Quota with a limit on the number of messages and on the bytes of their
// payloads, for each group and class. A larger message is allowed if it is alone.
func NewQuota(messages, bytes int) Quota {
	return Quota{messages: messages, bytes: bytes, use: make(map[quotaKey]*usage)}
}

// Take reports whether a message may be queued, and counts it if so.
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

// Give returns the room of messages that Take has counted.
func (q *Quota) Give(messages ...Message) {
	for i := range messages {
		u := q.usage(&messages[i])
		u.messages--
		u.bytes -= len(messages[i].Payload)
	}
	q.waiting -= len(messages)
}

// Waiting returns the number of queued messages of all groups and classes.
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
