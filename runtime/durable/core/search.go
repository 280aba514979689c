package core

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Limits of a page of a search.
const (
	searchDefault = 100
	searchBytes   = 4 << 20 // as large as a request; the first record of a page may be larger
	// searchScan is the highest number of records that a page looks at. Where no index
	// fits the filter, a page may be short or even empty, and has a cursor.
	searchScan = 10_000
)

// page is a page of results while it is filled.
type page struct {
	limit, size int
	count       int    // results
	looked      int    // records that were compared with the filter
	last        string // id of the last record before the end of the page
	cut         bool   // there may be more results
}

// next reports whether the record with an id may be compared with the filter. If not, the
// page is complete.
func (p *page) next() bool {
	p.looked++
	p.cut = p.looked > searchScan
	return !p.cut
}

// room reports whether a result fits the page. If not, the page is complete.
func (p *page) room(size int) bool {
	p.cut = p.count == p.limit || p.count > 0 && p.size+size > searchBytes
	if !p.cut {
		p.count++
		p.size += size
	}
	return !p.cut
}

func (p *page) cursor(kind byte) string {
	if !p.cut {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append([]byte{kind}, p.last...))
}

// openPage reads the limit and the cursor of a search. The kind of a cursor is p for
// promises, t for tasks and s for schedules.
func openPage(limit int, cursor string, kind byte) (page, string) {
	p := page{limit: limit}
	if limit == 0 {
		p.limit = searchDefault
	}
	if cursor == "" {
		return p, ""
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) == 0 || b[0] != kind || badID("cursor", string(b[1:])) != "" {
		return p, "cursor must be the cursor of an earlier page of the same search"
	}
	p.last = string(b[1:])
	return p, ""
}

func (s *step) promiseSearch(op protocol.PromiseSearch) protocol.Result {
	page, refusal := openPage(op.Limit, op.Cursor, 'p')
	if refusal != "" {
		return fail(protocol.BadRequest, refusal)
	}
	list := []protocol.Promise{}
	for id := range merged(s.promiseSources(&op, page.last)) {
		if !page.next() {
			break
		}
		p := s.indexed(id)
		s.project(p)
		if matches(p, &op) {
			if !page.room(p.size()) {
				break
			}
			list = append(list, *p.record())
		}
		page.last = id
	}
	return protocol.Result{Status: protocol.OK, Promises: list, Cursor: page.cursor('p')}
}

// indexed returns a promise that an index has.
func (s *step) indexed(id string) *promise {
	p := s.promise(id)
	if p == nil {
		panic(corrupt(Promises, []byte(id), "an index has the promise, but it does not exist"))
	}
	return p
}

func matches(p *promise, op *protocol.PromiseSearch) bool {
	return (op.State == "" || op.State == stateNames[p.state]) && includes(p.tags, op.Tags)
}

// includes reports whether a promise has all tags of a filter.
func includes(tags, filter map[string]string) bool {
	for key, value := range filter {
		if tag, ok := tags[key]; !ok || tag != value {
			return false
		}
	}
	return true
}

// promiseSources returns the shortest known lists of ids that contain all promises of a
// search after an id.
func (s *step) promiseSources(op *protocol.PromiseSearch, after string) []source {
	if key, ok := narrowest(op.Tags); ok {
		return s.tagged(key, op.Tags[key], after)
	}
	class := func(c byte) source { return s.listed(PromiseStates, []byte{c}, after) }
	switch op.State {
	case protocol.Pending:
		return []source{class(classTask), class(classPending)}
	case protocol.Rejected:
		return []source{class(classRejected)}
	case protocol.RejectedCancel:
		return []source{class(classCanceled)}
	case protocol.RejectedTimeout: // pending promises may have passed their deadline
		return []source{class(classTimedout), class(classTask), class(classPending)}
	}
	return []source{s.listed(Promises, nil, after)}
}

// narrowest returns the tag of a filter that probably fewest promises have.
func narrowest(filter map[string]string) (string, bool) {
	for _, key := range []string{protocol.TagBranch, protocol.TagSchedule} {
		if _, ok := filter[key]; ok {
			return key, true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(filter)) {
		if !strings.HasPrefix(key, "resonate:") {
			return key, true
		}
	}
	for _, key := range []string{protocol.TagParent, protocol.TagOrigin} {
		if _, ok := filter[key]; ok {
			return key, true
		}
	}
	return "", false
}

// tagged returns the promises with a tag: the entries of the index, and the promises that
// need no entry, see tagIndexed.
func (s *step) tagged(key, value, after string) []source {
	sources := []source{s.listed(PromiseTags, tagPrefix(nil, key, value), after)}
	switch key {
	case protocol.TagBranch:
		sources = append(sources, s.between(value, value+"\x00", after))
	case protocol.TagOrigin, protocol.TagParent:
		sources = append(sources,
			s.between(value, value+"\x00", after), s.between(value+".", value+"/", after), s.between(value+":", value+";", after))
	}
	return sources
}

func (s *step) taskSearch(op protocol.TaskSearch) protocol.Result {
	page, refusal := openPage(op.Limit, op.Cursor, 't')
	if refusal != "" {
		return fail(protocol.BadRequest, refusal)
	}
	tasks := s.listed(Tasks, nil, page.last)
	if op.State != "" && op.State != protocol.TaskFulfilled {
		tasks = s.listed(PromiseStates, []byte{classTask}, page.last)
	}
	list := []protocol.Task{}
	for id := range tasks {
		if !page.next() {
			break
		}
		t := s.mustTask(id, PromiseStates)
		state := taskStateNames[t.state]
		if !s.live(t) {
			state = protocol.TaskFulfilled
		}
		if op.State == "" || op.State == state {
			r := s.taskRecord(t)
			if !page.room(taskSize(r)) {
				break
			}
			list = append(list, *r)
		}
		page.last = id
	}
	return protocol.Result{Status: protocol.OK, Tasks: list, Cursor: page.cursor('t')}
}

// taskSize is the number of bytes that a task has about, in a response.
func taskSize(t *protocol.Task) int {
	size := 100 + len(t.ID)
	for _, id := range t.Resumes {
		size += len(id) + 3
	}
	return size
}

func (s *step) scheduleSearch(op protocol.ScheduleSearch) protocol.Result {
	page, refusal := openPage(op.Limit, op.Cursor, 's')
	if refusal != "" {
		return fail(protocol.BadRequest, refusal)
	}
	list := []protocol.Schedule{}
	for id := range s.listed(Schedules, nil, page.last) {
		if !page.next() {
			break
		}
		found := s.schedule(id)
		if includes(found.PromiseTags, op.Tags) {
			if !page.room(scheduleSize(found)) {
				break
			}
			list = append(list, *found)
		}
		page.last = id
	}
	return protocol.Result{Status: protocol.OK, Schedules: list, Cursor: page.cursor('s')}
}

// scheduleSize is the number of bytes that a schedule has about, in a response.
func scheduleSize(p *protocol.Schedule) int {
	return 200 + len(p.ID) + len(p.PromiseID) + len(p.Cron) + valueSize(p.PromiseParam) + textsSize(p.PromiseTags)
}
