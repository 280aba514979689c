package core

import (
	"maps"
	"sort"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Texts that a promise id of a schedule may contain.
const (
	idField        = "{{.id}}"
	timestampField = "{{.timestamp}}"
)

func (x *tx) schedule(id string) *protocol.Schedule {
	x.key = append(x.key[:0], id...)
	body := x.get(Schedules, x.key)
	if body == nil {
		return nil
	}
	found, bad := decodeSchedule(id, body)
	if bad != "" {
		panic(corrupt(Schedules, x.key, "%s", bad))
	}
	return found
}

func (s *step) scheduleGet(op protocol.ScheduleGet) protocol.Result {
	found := s.schedule(op.ID)
	if found == nil {
		return noSchedule(op.ID)
	}
	return protocol.Result{Status: protocol.OK, Schedule: found}
}

func noSchedule(id string) protocol.Result {
	return fail(protocol.NotFound, "schedule "+quote(id)+" does not exist")
}

// badSchedule checks that each occurrence of a schedule can create a promise with an id of
// its own.
func badSchedule(op *protocol.ScheduleCreate, strict bool) string {
	if _, ok := op.PromiseTags[protocol.TagTarget]; !ok {
		return "promiseTags must have the tag " + protocol.TagTarget
	}
	if !strings.Contains(op.PromiseID, timestampField) {
		return "promiseId must contain " + timestampField + ", because all occurrences would have the same promise otherwise"
	}
	if len(op.PromiseTags) == protocol.MaxTags {
		return "promiseTags must leave room for the tag " + protocol.TagSchedule
	}
	if bad := first(badID("id", op.ID), badID("promiseId", expand(op.PromiseID, op.ID, protocol.MaxTime))); bad != "" {
		return bad
	}
	return first(badTime("promiseTimeout", op.PromiseTimeout), badTags("promiseTags", op.PromiseTags, strict),
		badValue("promiseParam", op.PromiseParam))
}

// expand returns the id of the promise of an occurrence.
func expand(template, id string, at int64) string {
	return strings.NewReplacer(idField, id, timestampField, itoa(at)).Replace(template)
}

func (s *step) scheduleCreate(op *protocol.ScheduleCreate) protocol.Result {
	spec, refusal := parseCron(op.Cron)
	if spec == nil {
		return fail(protocol.BadRequest, refusal)
	}
	if found := s.schedule(op.ID); found != nil {
		return protocol.Result{Status: protocol.OK, Schedule: found}
	}
	next, ok := nextOccurrence(spec, s.now.Wall)
	if !ok {
		return fail(protocol.BadRequest, "cron has no occurrence")
	}
	created := &protocol.Schedule{
		ID: op.ID, Cron: op.Cron, PromiseID: op.PromiseID, PromiseTimeout: op.PromiseTimeout, PromiseParam: op.PromiseParam,
		PromiseTags: op.PromiseTags, CreatedAt: s.now.Wall, NextRunAt: next,
	}
	s.putSchedule(created)
	s.markTime(ScheduleTimes, next, op.ID)
	return protocol.Result{Status: protocol.OK, Schedule: created}
}

func (s *step) putSchedule(p *protocol.Schedule) {
	s.key = append(s.key[:0], p.ID...)
	s.put(Schedules, s.key, appendSchedule(s.body[:0], p))
}

func (s *step) scheduleDelete(op protocol.ScheduleDelete) protocol.Result {
	found := s.schedule(op.ID)
	if found == nil {
		return noSchedule(op.ID)
	}
	s.unmarkTime(ScheduleTimes, found.NextRunAt, op.ID)
	s.key = append(s.key[:0], op.ID...)
	s.kv.Delete(Schedules, s.key)
	return protocol.Result{Status: protocol.OK}
}

// never is the time of the next occurrence of a schedule that has no more. No instant
// reaches it.
const never = protocol.MaxTime + 1

// occurrencesInARow is how many occurrences of one schedule are handled before other
// schedules that are due get their turn.
const occurrencesInARow = 100

// runSchedule creates the promises of the occurrences of a schedule that are due, at most
// limit. It returns their number.
func (s *step) runSchedule(due entry, limit int) int {
	p := s.schedule(due.id)
	if p == nil || p.NextRunAt != due.at {
		panic(corrupt(ScheduleTimes, timeKey(nil, due.at, due.id), "does not match its schedule"))
	}
	spec, refusal := parseCron(p.Cron)
	if spec == nil {
		panic(corrupt(Schedules, []byte(p.ID), "%s", refusal))
	}
	tags := maps.Clone(p.PromiseTags)
	tags[protocol.TagSchedule] = p.ID
	s.unmarkTime(ScheduleTimes, p.NextRunAt, p.ID)
	skipped := s.skipMissed(p, spec)
	n := 0
	for again := true; again && n < min(limit, occurrencesInARow); n++ {
		again = s.occur(p, spec, tags)
	}
	s.putSchedule(p)
	s.markTime(ScheduleTimes, p.NextRunAt, p.ID)
	if skipped {
		return limit // the search has taken as long as a Tick may
	}
	return n
}

// second is the shortest time between two occurrences, in milliseconds.
const second = 1_000

// skipMissed skips the oldest occurrences of a schedule if more than Config.MissedMax are
// due, and reports whether it did.
func (s *step) skipMissed(p *protocol.Schedule, spec *cron.SpecSchedule) bool {
	now, most := s.now.Wall, s.config.MissedMax
	seconds := (now - p.NextRunAt) / second
	if seconds < int64(most) || s.looked[p.ID] {
		return false
	}
	if s.looked == nil {
		s.looked = map[string]bool{}
	}
	s.looked[p.ID] = true
	if occurrences(spec, p.NextRunAt-1, now, most+1) <= most {
		return false
	}
	since := func(i int) int64 { return now - int64(i)*second }
	tooLong := sort.Search(int(seconds)+1, func(i int) bool { return occurrences(spec, since(i), now, most+1) > most })
	to, _ := nextOccurrence(spec, since(tooLong-1))
	s.gaps = append(s.gaps, protocol.Gap{Schedule: p.ID, From: p.NextRunAt, To: to})
	p.NextRunAt = to
	return true
}

// occurrences counts the occurrences after an instant until another one, up to most.
func occurrences(spec *cron.SpecSchedule, after, until int64, most int) (n int) {
	for ; n < most; n++ {
		at, ok := nextOccurrence(spec, after)
		if !ok || at > until {
			break
		}
		after = at
	}
	return n
}

// occur creates the promise of the next occurrence of a schedule, and reports whether the
// occurrence after it is due as well. The promise of an occurrence that was missed looks as
// if it had been created in time: its record does not depend on when the server was down.
// It is settled at once if its deadline has passed.
func (s *step) occur(p *protocol.Schedule, spec *cron.SpecSchedule, tags map[string]string) bool {
	at := p.NextRunAt
	id := expand(p.PromiseID, p.ID, at)
	create := protocol.PromiseCreate{ID: id, TimeoutAt: min(at+p.PromiseTimeout, protocol.MaxTime), Param: p.PromiseParam, Tags: tags, Origin: id}
	if _, exists := s.promiseHead(id); !exists {
		s.create(&create, at)
		s.occurrences++
	}
	p.LastRunAt = &at
	next, ok := nextOccurrence(spec, at)
	if !ok {
		next = never
	}
	p.NextRunAt = next
	return next <= s.now.Wall
}
