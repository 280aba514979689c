package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// A step is one event of a sequence. A sequence stays valid when steps are removed from
// it, so that it can be shrunk.
type step struct {
	action    action
	wall, run int64 // the two clocks

	remote  bool   // the request says what time it is
	request object // of a request
	paged   bool   // a search that continues at the cursor of the previous one with this filter
	limit   int    // of a tick: timeouts for each call of the core
	unblock        // of a delivery
}

type action int

const (
	request action = iota // a client sends a request
	tick                  // the engine processes timeouts
	deliver               // a connection takes an unblock message
	commit                // the transaction ends, and its steps are durable
	crash                 // the process ends before the commit: the steps of the transaction are lost
)

// String returns the step as a line of a transcript. Times are relative to the beginning.
func (s step) String() string {
	at := fmt.Sprintf("%7d %7d  ", s.wall-beginWall, s.run-beginRun)
	switch s.action {
	case tick:
		return at + fmt.Sprintf("tick, %d at a time", s.limit)
	case deliver:
		return at + fmt.Sprintf("delivered: %s to %s", s.promise, s.address)
	case commit:
		return at + "commit"
	case crash:
		return at + "crash: back to the last commit"
	}
	line := at + fmt.Sprint(s.request["kind"])
	if origin, ok := s.request["head"].(object)["resonate:origin"]; ok {
		line += fmt.Sprintf(" of origin %v", origin)
	}
	if s.paged {
		line += " at the cursor of the previous page"
	}
	return line + " " + string(encode(s.request["data"]))
}

// cursors are the cursors of the last searches, by their filters. Pages are compared only
// if nothing changes between them: the table does not say whether a page shows a record
// that matched the filter too late for the page before it.
type cursors map[string]string

// before forgets the cursors before a step that can change what a search finds.
func (c cursors) before(s, previous step) {
	if s.action != request || !isSearch(s.request) || s.wall != previous.wall {
		clear(c)
	}
}

// filter returns the kind and the filter of a search, without its limit.
func (s step) filter() string {
	data := s.request["data"].(object)
	return string(encode([]any{s.request["kind"], data["state"], data["tags"]}))
}

// after keeps the cursor of a response, if it is one of a search.
func (c cursors) after(s step, response []byte) {
	if isSearch(s.request) {
		c[s.filter()] = cursorOf(response)
	}
}

func isSearch(request object) bool { return strings.HasSuffix(request["kind"].(string), ".search") }

// body returns the JSON of the request, at the cursor of its filter.
func (s step) body(c cursors) []byte {
	r := s.request
	if s.paged {
		data := maps.Clone(r["data"].(object))
		if cursor := c[s.filter()]; cursor != "" {
			data["cursor"] = cursor
		}
		r = object{"kind": r["kind"], "head": r["head"], "data": data}
	}
	if s.remote {
		head := maps.Clone(r["head"].(object))
		head["resonate:debug_time"] = s.wall
		r = object{"kind": r["kind"], "head": head, "data": r["data"]}
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return b
}

// cursorOf returns the cursor of a response to a search, if it has one.
func cursorOf(response []byte) string {
	var r struct{ Data struct{ Cursor string } }
	_ = json.Unmarshal(response, &r)
	return r.Data.Cursor
}
