package oracle

import (
	"maps"
	"strconv"
	"strings"
)

func readSchedule(f *fields) schedule {
	c := schedule{
		ID: f.id("id"), Cron: f.text("cron"), PromiseID: f.id("promiseId"), PromiseTimeout: f.millis("promiseTimeout", 0),
		PromiseParam: f.value("promiseParam"), PromiseTags: f.targetTags("promiseTags"),
	}
	if _, err := parseCron(c.Cron); err != nil {
		f.fail("cron: %v", err)
	}
	if !strings.Contains(c.PromiseID, "{{.timestamp}}") {
		f.fail("promiseId must have {{.timestamp}}: ids of occurrences are unique")
	}
	if _, hasTarget := c.PromiseTags["resonate:target"]; !hasTarget {
		f.fail("the promises of a schedule must have a target")
	}
	return c
}

func (s *Server) scheduleGet(id string) answer {
	c, exists := s.schedules[id]
	if !exists {
		return refuse(404, "there is no schedule %q", id)
	}
	return ok(object{"schedule": c})
}

func (s *Server) scheduleCreate(c schedule) answer {
	if s.config.Strict && timerWithTarget(c.PromiseTags) {
		return refuse(400, "a timer must not have a target")
	}
	if _, exists := s.schedules[c.ID]; !exists {
		c.CreatedAt, c.NextRunAt = s.wall, next(c.Cron, s.wall)
		s.schedules[c.ID] = c
	}
	return ok(object{"schedule": s.schedules[c.ID]})
}

func (s *Server) scheduleDelete(id string) answer {
	if _, exists := s.schedules[id]; !exists {
		return refuse(404, "there is no schedule %q", id)
	}
	delete(s.schedules, id)
	return ok(object{})
}

// fire creates the promises of the occurrences of a schedule that are due, also of those
// that were missed (S11). Of too many, the oldest are skipped.
func (s *Server) fire(id string) {
	c := s.schedules[id]
	var due []int64
	for ; c.NextRunAt <= s.wall; c.NextRunAt = next(c.Cron, c.NextRunAt) {
		due = append(due, c.NextRunAt)
	}
	if most := s.config.MissedMax; most > 0 && len(due) > most {
		s.skipped += len(due) - most
		due = due[len(due)-most:]
	}
	for _, at := range due {
		promiseID := strings.NewReplacer("{{.id}}", c.ID, "{{.timestamp}}", strconv.FormatInt(at, 10)).Replace(c.PromiseID)
		if _, exists := s.promises[promiseID]; !exists {
			tags := maps.Clone(c.PromiseTags)
			tags["resonate:schedule"] = c.ID
			s.create(creation{promiseID, min(at+c.PromiseTimeout, timeMax), c.PromiseParam, tags, promiseID}, at)
		}
		c.LastRunAt = &at
	}
	s.schedules[id] = c
}
