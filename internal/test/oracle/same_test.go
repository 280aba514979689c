package oracle

import (
	"maps"
	"slices"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// same reports whether the oracle has the state of a snapshot and of schedules. It is
// faster than a comparison of their JSON, which is made only to show a difference.
func (s *Server) same(snapshot *protocol.Snapshot, schedules []protocol.Schedule) bool {
	left := s.entries()
	for _, p := range snapshot.Promises {
		left.take(samePromise(s.promises[p.ID], p))
	}
	for _, t := range snapshot.Tasks {
		left.take(sameTask(s.tasks[t.ID], t))
	}
	for _, c := range schedules {
		left.take(sameSchedule(s.schedules[c.ID], c))
	}
	for _, t := range snapshot.PromiseTimeouts {
		p := s.promises[t.ID]
		left.take(p.armed() && p.TimeoutAt == t.Timeout)
	}
	for _, c := range snapshot.Callbacks {
		left.take(slices.Contains(s.promises[c.Awaited].callbacks, c.Awaiter))
	}
	for _, l := range snapshot.Listeners {
		left.take(slices.Contains(s.promises[l.ID].listeners, l.Address))
	}
	for _, t := range snapshot.TaskTimeouts {
		ours := s.tasks[t.ID]
		if t.Type == 1 {
			left.take(equal(ours.lease, &t.Timeout))
		} else {
			left.take(equal(ours.retry, &t.Timeout) || equal(ours.delay, &t.Timeout))
		}
	}
	for _, m := range snapshot.Messages {
		p := m.Message.Unblock
		left.take(p != nil && slices.Contains(s.outbox, unblock{p.ID, m.Address}) && samePromise(s.promises[p.ID], *p))
	}
	return left == 0
}

// entries is the number of entries of a state. It is negative if an entry differs.
type entries int64

// take removes an entry that both have. Two snapshots with the same number of entries, of
// which none is there twice, are equal if each entry of the one is in the other.
func (n *entries) take(same bool) {
	if !same {
		*n = -1 << 60
	}
	*n--
}

func (s *Server) entries() entries {
	n := len(s.promises) + len(s.tasks) + len(s.schedules) + len(s.outbox)
	for _, p := range s.promises {
		n += len(p.callbacks) + len(p.listeners)
		if p.armed() {
			n++
		}
	}
	for _, t := range s.tasks {
		for _, timer := range []*int64{t.lease, t.retry, t.delay} {
			if timer != nil {
				n++
			}
		}
	}
	return entries(n)
}

func (p promise) armed() bool { return p.State == "pending" && p.external() }

func samePromise(p promise, q protocol.Promise) bool {
	return p.ID == q.ID && p.State == string(q.State) && sameValue(p.Param, q.Param) && sameValue(p.Value, q.Value) &&
		maps.Equal(p.Tags, q.Tags) && p.TimeoutAt == q.TimeoutAt && p.CreatedAt == q.CreatedAt && equal(p.SettledAt, q.SettledAt)
}

func sameValue(v value, w protocol.Value) bool {
	return maps.Equal(v.Headers, w.Headers) && equal(v.Data, w.Data)
}

func sameTask(t task, u protocol.Task) bool {
	return t.ID == u.ID && t.State == string(u.State) && t.Version == u.Version && equal(t.TTL, u.TTL) && equal(t.PID, u.PID) &&
		slices.Equal(slices.Sorted(slices.Values(t.Resumes)), slices.Sorted(slices.Values(u.Resumes)))
}

func sameSchedule(s schedule, c protocol.Schedule) bool {
	return s.ID == c.ID && s.Cron == c.Cron && s.PromiseID == c.PromiseID && s.PromiseTimeout == c.PromiseTimeout &&
		sameValue(s.PromiseParam, c.PromiseParam) && maps.Equal(s.PromiseTags, c.PromiseTags) &&
		s.CreatedAt == c.CreatedAt && s.NextRunAt == c.NextRunAt && equal(s.LastRunAt, c.LastRunAt)
}

func equal[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
