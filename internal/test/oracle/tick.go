package oracle

import (
	"cmp"
	"maps"
	"slices"
)

// tick processes everything that is due, in the order of the table. Schedules are first,
// because they can create promises whose deadline has passed.
func (s *Server) tick() {
	for _, id := range sorted(s.schedules) {
		s.fire(id)
	}
	expired := s.expired()
	for _, id := range expired {
		s.promises[id] = s.promises[id].at(s.wall)
	}
	for _, id := range expired {
		s.fulfill(id)
	}
	for _, id := range expired {
		s.propagate(id)
	}
	for _, id := range sorted(s.tasks) {
		t := s.tasks[id]
		due := func(timer *int64, clock int64) bool { return timer != nil && *timer <= clock }
		if due(t.lease, s.run) || due(t.retry, s.run) || due(t.delay, s.wall) {
			s.execute(t.with("pending"))
		}
	}
}

// expired returns the pending external promises whose deadline has passed, the earliest
// first. All others are settled by projection alone: they have no task, no callbacks and
// no listeners.
func (s *Server) expired() []string {
	var ids []string
	for id, p := range s.promises {
		if p.external() && p.State != p.at(s.wall).State {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.promises[a].TimeoutAt, s.promises[b].TimeoutAt), cmp.Compare(a, b))
	})
	return ids
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// timer is an instant at which something happens, on one of the clocks.
type timer struct {
	at     int64
	run    bool
	silent bool // nothing happens: requests compute the new state
}

// timers returns the instants at which something happens, in an order that depends on the
// state alone.
func (s *Server) timers() (all []timer) {
	for _, id := range sorted(s.promises) {
		if p := s.promises[id]; p.State == "pending" {
			all = append(all, timer{p.TimeoutAt, false, !p.external()})
		}
	}
	for _, id := range sorted(s.tasks) {
		t := s.tasks[id]
		for _, at := range []*int64{t.lease, t.retry} {
			if at != nil {
				all = append(all, timer{*at, true, false})
			}
		}
		if t.delay != nil {
			all = append(all, timer{*t.delay, false, false})
		}
	}
	for _, id := range sorted(s.schedules) {
		all = append(all, timer{s.schedules[id].NextRunAt, false, false})
	}
	return all
}
