package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An Event is a request of a history with its response. A client has sent the request at
// Call and received the response at End, in milliseconds on the clock of the server.
type Event struct {
	Request   []byte
	Call, End int64

	reads    bool
	unknown  bool    // the client has no response
	response string  // in canonical form
	times    []int64 // at which the server may have carried out the request

	promises map[string][]int64 // in the response, by id: the times at which they were created and settled
}

// NewEvent returns an event.
func NewEvent(request, response []byte, call, end int64) Event {
	e := Event{Request: request, Call: call, End: end, response: canonical(response), promises: map[string][]int64{}}
	kind := kindOf(response)
	e.reads = strings.HasSuffix(kind, ".get") || strings.HasSuffix(kind, ".search")
	var v any
	if json.Unmarshal(response, &v) == nil {
		e.find(v)
	}
	for _, times := range e.promises {
		e.keep(times)
	}
	return e
}

// find keeps the times of the promises in a value.
func (e *Event) find(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			e.find(item)
		}
	case object:
		for _, field := range v {
			e.find(field)
		}
		id, _ := v["id"].(string)
		for _, field := range []string{"createdAt", "settledAt"} {
			if at, isTime := v[field].(float64); isTime {
				e.promises[id] = append(e.promises[id], int64(at))
			}
		}
	}
}

// keep keeps the times that are during the event.
func (e *Event) keep(times []int64) {
	for _, at := range times {
		if at >= e.Call && at <= e.End && !slices.Contains(e.times, at) {
			e.times = append(e.times, at)
		}
	}
}

// NewUnknown returns an event whose client has received no response: the server may carry
// it out at any time after the call, or never. Others are the other events of the history.
// They show when the server has changed the promises that the request names.
func NewUnknown(request []byte, call int64, others []Event) Event {
	e := Event{Request: request, Call: call, unknown: true}
	for _, other := range others {
		e.End = max(e.End, other.End)
	}
	for _, other := range others {
		for id, times := range other.promises {
			if bytes.Contains(request, encode(id)) {
				e.keep(times)
			}
		}
	}
	return e
}

// String returns the request and the response.
func (e Event) String() string {
	return fmt.Sprintf("%d to %d: %s\n\t%s", e.Call, e.End, e.Request, e.response)
}

// Follow returns the states in which the server can be after an event, in a history in
// which it had state s before. The server may have carried out the request, and timeouts
// before it, at any instant between the call and the response. No state means that the
// response is wrong.
//
// The times of a state are the earliest ones that are possible. So a state also stands for
// all states in which the same happened later. Both clocks of the server must have begun
// at the same time: run can be a millisecond behind, because it is rounded too.
//
// A request that only reads does not wait for a write whose time is earlier but that is not
// committed yet. So the time of a read is a bound for later requests only if it was the
// deadline of a promise that the read has seen.
func (s *Server) Follow(e Event) (states []*Server) {
	if e.unknown {
		states = append(states, s)
	}
	for _, before := range s.timeouts(e.End) {
		for _, wall := range before.instants(e) {
			after := before.Clone()
			response, _ := after.Apply(wall, wall-1, e.Request)
			if !e.unknown && canonical(response) != e.response {
				continue
			}
			if e.reads && wall == max(before.wall, e.Call) {
				after.wall, after.run = before.wall, before.run
			}
			states = append(states, after)
		}
	}
	return states
}

// timeouts returns the states in which the server can be because it has processed some of
// the timeouts that are due until end, or none of them.
func (s *Server) timeouts(end int64) []*Server {
	states := []*Server{s}
	for {
		due := int64(-1)
		for _, t := range s.timers() {
			if t.at <= end && (due < 0 || t.at < due) && !t.silent {
				due = t.at
			}
		}
		if due < 0 {
			return states
		}
		s = s.Clone()
		s.Tick(max(s.wall, due), due)
		states = append(states, s)
	}
}

// instants returns times at which the server may have carried out a request. Other times
// than these lead to the same states.
func (s *Server) instants(e Event) (all []int64) {
	first := max(s.wall, e.Call)
	add := func(at int64) {
		if at >= first && at <= e.End && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	add(first)
	for _, p := range s.promises {
		if p.State == "pending" {
			add(p.TimeoutAt)
		}
	}
	for _, at := range e.times {
		add(at)
	}
	return all
}

// Key returns a text that is the same for two servers in the same state.
func (s *Server) Key() string {
	c := s.Clone()
	for id, t := range c.tasks {
		t.retry = nil // its messages are not part of a history
		c.tasks[id] = t
	}
	return string(encode([]any{c.wall, c.snapshot(), c.schedules}))
}

// Outcome returns the kind of the request with the status of the response.
func (e Event) Outcome() string {
	if e.unknown {
		return "unknown"
	}
	return fmt.Sprintf("%s %d", kindOf([]byte(e.response)), statusOf([]byte(e.response)))
}

func kindOf(response []byte) string {
	var r struct{ Kind string }
	_ = json.Unmarshal(response, &r)
	return r.Kind
}

func statusOf(response []byte) int {
	var r struct{ Head struct{ Status int } }
	_ = json.Unmarshal(response, &r)
	return r.Head.Status
}
