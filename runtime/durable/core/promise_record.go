package core

import (
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/wire"
)

// recordVersion begins each record of a promise, task or schedule.
const recordVersion = 1

// promise is the record of a promise in the store: a head of fixed size, which is enough
// for most guards, and the rest.
type promise struct {
	promiseHead
	id     string
	origin string // from the head of the request; "" if the tags or the id give it
	tags   map[string]string
	param  protocol.Value
	value  protocol.Value
	// birth is the origin, the tags and the param as they are stored, which never change. It
	// is "" for a new promise.
	birth string
}

type promiseHead struct {
	state     state
	flags     flags
	timeoutAt int64
	createdAt int64
	settledAt int64
}

// state is a protocol.PromiseState as a number.
type state byte

const (
	pending state = iota
	resolved
	rejected
	canceled
	timedout
	stateCount
)

var stateNames = [stateCount]protocol.PromiseState{
	protocol.Pending, protocol.Resolved, protocol.Rejected, protocol.RejectedCancel, protocol.RejectedTimeout,
}

// flags are properties of a promise that follow from its tags.
type flags byte

const (
	timer    flags = 1 << iota // resolved at its deadline
	targeted                   // has a task
	external                   // other programs may wait for it, and it has a timeout entry
	allFlags = timer | targeted | external
)

func flagsOf(tags map[string]string) flags {
	var f flags
	if tags[protocol.TagTimer] == "true" {
		f |= timer | external
	}
	if _, ok := tags[protocol.TagTarget]; ok {
		f |= targeted | external
	}
	if tags[protocol.TagExternal] == "true" || tags[protocol.TagScope] == "global" {
		f |= external
	}
	return f
}

func appendPromise(b []byte, p *promise) []byte {
	b = append(b, recordVersion, byte(p.state)|byte(p.flags)<<4)
	b = wire.AppendUint(b, uint64(p.timeoutAt))
	b = wire.AppendUint(b, uint64(p.createdAt))
	if p.state != pending {
		b = wire.AppendUint(b, uint64(p.settledAt))
	}
	if p.birth != "" {
		b = append(b, p.birth...)
	} else {
		b = wire.AppendString(b, p.origin)
		b = appendTexts(b, p.tags)
		b = appendValue(b, p.param)
	}
	return appendValue(b, p.value)
}

// head reads the head of a record.
func (d *decoder) head() (h promiseHead) {
	if v := d.byte(); v != recordVersion {
		d.fail("the record has an unknown version")
	}
	b := d.byte()
	h.state, h.flags = state(b&0xf), flags(b>>4)
	if h.state >= stateCount || h.flags&^allFlags != 0 {
		d.fail("the promise has an unknown state")
		h.state = 0
	}
	h.timeoutAt, h.createdAt = d.number(), d.number()
	if h.state != pending {
		h.settledAt = d.number()
	}
	return h
}

// decode reads a record, and returns why it cannot be read, or "". The promise does not
// refer to body.
func (p *promise) decode(id string, body []byte) string {
	d := decoder{rest: string(body)}
	p.id, p.promiseHead = id, d.head()
	p.birth = d.rest
	p.origin, p.tags, p.param = d.text(), d.texts(), d.value()
	p.birth = p.birth[:len(p.birth)-len(d.rest)]
	p.value = d.value()
	return d.end()
}

func decodePromise(id string, body []byte) (*promise, string) {
	p := new(promise)
	return p, p.decode(id, body)
}

// headSize is enough for the head of a record.
const headSize = 2 + 3*10

func decodeHead(body []byte) (promiseHead, string) {
	d := decoder{rest: string(body[:min(len(body), headSize)])}
	return d.head(), d.bad
}

// record is the promise as responses show it. It refers to p, which must not change any
// more.
func (p *promise) record() *protocol.Promise {
	r := p.shown()
	return &r
}

func (p *promise) shown() protocol.Promise {
	r := protocol.Promise{
		ID: p.id, State: stateNames[p.state], Param: p.param, Value: p.value, Tags: p.tags,
		TimeoutAt: p.timeoutAt, CreatedAt: p.createdAt,
	}
	if r.Tags == nil {
		r.Tags = map[string]string{}
	}
	if p.state != pending {
		r.SettledAt = &p.settledAt
	}
	return r
}

// projected is the promise as it is at an instant: a pending promise is settled at its
// deadline, whether or not a Tick has done so in the store. A timeout always wins.
func (h promiseHead) projected(now Instant) promiseHead {
	if h.state == pending && now.Wall >= h.timeoutAt {
		h.state, h.settledAt = h.outcome(), h.timeoutAt
	}
	return h
}

// outcome is the state that a promise has after its deadline.
func (h promiseHead) outcome() state {
	if h.flags&timer != 0 {
		return resolved
	}
	return timedout
}

// projected is [promiseHead.projected] at the time of the step. The answer depends on it.
func (s *step) projected(h promiseHead) promiseHead {
	now := h.projected(s.now)
	if now.state != h.state {
		s.passed = max(s.passed, h.timeoutAt)
	}
	return now
}

// project changes a promise that was read from the store to its projection.
func (s *step) project(p *promise) { p.promiseHead = s.projected(p.promiseHead) }
