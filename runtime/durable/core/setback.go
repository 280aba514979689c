package core

import (
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// SetBack prepares a store for a time of day before the present one, so that nothing that an
// answer has shown is undone by it: promises whose deadline has passed are settled in the
// store, also if only answers have shown them as settled. Pending promises that were
// created after the new time, and schedules, go on from it. It is for a driver whose clock
// was ahead, and not on the wire. While Result.More is true, the driver repeats it with
// Result.Cursor. Then it continues with the new time.
type SetBack struct {
	To     int64  // the new time of day
	Cursor string // of the last result
	Limit  int    // the highest number of promises to look at; 0: [TickLimitDefault]
}

func (SetBack) Kind() string { return "setback" }

func (s *step) setBack(op SetBack) protocol.Result {
	limit := op.Limit
	if limit <= 0 {
		limit = TickLimitDefault
	}
	if s.expirePromises(limit) == limit {
		return protocol.Result{Status: protocol.OK, More: true, Cursor: op.Cursor}
	}
	page := page{limit: limit, last: op.Cursor}
	var ids []string
	for id := range merged([]source{s.listed(PromiseStates, []byte{classTask}, page.last), s.listed(PromiseStates, []byte{classPending}, page.last)}) {
		if !page.room(0) {
			break
		}
		ids, page.last = append(ids, id), id
	}
	for _, id := range ids {
		switch p := s.indexed(id); {
		case p.projected(s.now).state != pending: // internal, see expirePromises
			s.settle(p, p.outcome(), protocol.Value{}, p.timeoutAt)
		case p.createdAt > op.To:
			p.createdAt = op.To
			s.putPromise(p)
		}
	}
	if page.cut {
		return protocol.Result{Status: protocol.OK, More: true, Cursor: page.last}
	}
	var schedules []string
	for id := range s.ids(Schedules) {
		schedules = append(schedules, id)
	}
	for _, id := range schedules {
		s.setBackSchedule(id, op.To)
	}
	return protocol.Result{Status: protocol.OK}
}

// setBackSchedule moves the next occurrence of a schedule to the first one after an instant,
// unless it is before that.
func (s *step) setBackSchedule(id string, to int64) {
	p := s.schedule(id)
	spec, refusal := parseCron(p.Cron)
	if spec == nil {
		panic(corrupt(Schedules, []byte(id), "%s", refusal))
	}
	next, ok := nextOccurrence(spec, to)
	if !ok || p.NextRunAt <= next {
		return
	}
	s.unmarkTime(ScheduleTimes, p.NextRunAt, id)
	p.NextRunAt, p.CreatedAt = next, min(p.CreatedAt, to)
	if p.LastRunAt != nil && *p.LastRunAt > to {
		p.LastRunAt = nil
	}
	s.putSchedule(p)
	s.markTime(ScheduleTimes, next, id)
}
