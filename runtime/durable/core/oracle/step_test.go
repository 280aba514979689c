package oracle

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A step is one event of a sequence. A sequence stays valid when steps are removed from
// it, so that it can be shrunk.
type step struct {
	action    action
	wall, run int64 // the two clocks

	request object // of a request
	paged   bool   // a search that continues at the cursor of the previous search of its kind
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
		line += " at the cursor of the last search"
	}
	return line + " " + string(encode(s.request["data"]))
}

// cursors are the cursors of the last searches, by kind.
type cursors map[string]string

// after keeps the cursor of a response, if it is one of a search.
func (c cursors) after(response []byte) {
	if kind := kindOf(response); strings.HasSuffix(kind, ".search") {
		c[kind] = cursorOf(response)
	}
}

// body returns the JSON of the request, at the cursor of its kind.
func (s step) body(c cursors) []byte {
	r := s.request
	if cursor := c[r["kind"].(string)]; s.paged && cursor != "" {
		data := object{"cursor": cursor}
		for k, v := range s.request["data"].(object) {
			data[k] = v
		}
		r = object{"kind": r["kind"], "head": r["head"], "data": data}
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return b
}
