package oracle

// query is the data of a search.
type query struct {
	state  string
	tags   map[string]string
	limit  int64
	cursor string // the last id of the previous page
}

// limitDefault is the length of a page if the request names none.
const limitDefault = 100

func readQuery(f *fields, states ...string) query {
	q := query{state: optional(f, "state", f.text), tags: f.tags("tags"), limit: limitDefault, cursor: optional(f, "cursor", f.text)}
	if l := optional(f, "limit", func(name string) int64 { return f.number(name, 1) }); l != 0 {
		q.limit = l
	}
	known := q.state == ""
	for _, state := range states {
		known = known || state == q.state
	}
	if !known {
		f.fail("%q is not a state", q.state)
	}
	return q
}

// page returns the records of a query by id, at most as many as its limit. The cursor of
// the answer is the last id if there are more.
func page[V any](q query, name string, all map[string]V, matches func(V) bool) answer {
	records := []V{}
	data := object{}
	last := ""
	for _, id := range sorted(all) {
		if id <= q.cursor || !matches(all[id]) {
			continue
		}
		if int64(len(records)) == q.limit {
			data["cursor"] = last
			break
		}
		records, last = append(records, all[id]), id
	}
	data[name] = records
	return ok(data)
}

func (q query) hasTags(tags map[string]string) bool {
	for k, v := range q.tags {
		if w, exists := tags[k]; !exists || v != w {
			return false
		}
	}
	return true
}

func (s *Server) promiseSearch(q query) answer {
	now := map[string]promise{}
	for id := range s.promises {
		now[id], _ = s.promise(id)
	}
	return page(q, "promises", now, func(p promise) bool {
		return (q.state == "" || p.State == q.state) && q.hasTags(p.Tags)
	})
}

func (s *Server) taskSearch(q query) answer {
	now := map[string]task{}
	for id := range s.tasks {
		now[id], _, _ = s.task(id)
	}
	return page(q, "tasks", now, func(t task) bool { return q.state == "" || t.State == q.state })
}

func (s *Server) scheduleSearch(q query) answer {
	return page(q, "schedules", s.schedules, func(c schedule) bool { return q.hasTags(c.PromiseTags) })
}
