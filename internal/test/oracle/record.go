package oracle

import (
	"slices"
	"strconv"
	"strings"
)

type value struct {
	Headers map[string]string `json:"headers,omitempty"`
	Data    *string           `json:"data,omitempty"`
}

// promise is a record of the wire with the fields that the wire does not show.
type promise struct {
	ID        string            `json:"id"`
	State     string            `json:"state"`
	Param     value             `json:"param"`
	Value     value             `json:"value"`
	Tags      map[string]string `json:"tags"`
	TimeoutAt int64             `json:"timeoutAt"`
	CreatedAt int64             `json:"createdAt"`
	SettledAt *int64            `json:"settledAt,omitempty"`

	headOrigin string   // resonate:origin in the head of the request that created it
	callbacks  []string // ids of awaiters
	listeners  []string // addresses
}

func (p promise) has(tag string) bool { _, ok := p.Tags[tag]; return ok }

func (p promise) timer() bool { return p.Tags["resonate:timer"] == "true" }

// external promises can be awaited, and their timeouts are processed (S-F2, S-F5).
func (p promise) external() bool {
	return p.has("resonate:target") || p.timer() ||
		p.Tags["resonate:external"] == "true" || p.Tags["resonate:scope"] == "global"
}

// at returns the promise as it is at an instant: a timeout always wins (S2).
func (p promise) at(wall int64) promise {
	if p.State == "pending" && p.TimeoutAt <= wall {
		p.State = "rejected_timedout"
		if p.timer() {
			p.State = "resolved"
		}
		settled := p.TimeoutAt
		p.SettledAt = &settled
	}
	return p
}

func (p promise) origin() string {
	if tag, ok := p.Tags["resonate:origin"]; ok {
		return tag
	}
	if p.headOrigin != "" {
		return p.headOrigin
	}
	if root, _, ok := strings.Cut(p.ID, ":"); ok {
		return root
	}
	root, _, _ := strings.Cut(p.ID, ".")
	return root
}

// delay returns the instant of the first dispatch, 0 if there is none.
func (p promise) delay() int64 {
	ms, _ := strconv.ParseInt(p.Tags["resonate:delay"], 10, 64)
	return ms
}

// task is a record of the wire with its timers. At most one of them is set: none is 0.
type task struct {
	ID      string   `json:"id"`
	State   string   `json:"state"`
	Version int64    `json:"version"`
	Resumes []string `json:"resumes"`
	TTL     *int64   `json:"ttl,omitempty"`
	PID     *string  `json:"pid,omitempty"`

	lease *int64 // on the run clock, of acquired tasks
	retry *int64 // on the run clock, of pending tasks that were dispatched
	delay *int64 // on the wall clock, of pending tasks that were never dispatched
}

// with returns the task in another state, without lease and timers.
func (t task) with(state string) task {
	return task{ID: t.ID, State: state, Version: t.Version, Resumes: t.Resumes}
}

func fulfilled(id string, version int64) task {
	return task{ID: id, State: "fulfilled", Version: version, Resumes: []string{}}
}

type schedule struct {
	ID             string            `json:"id"`
	Cron           string            `json:"cron"`
	PromiseID      string            `json:"promiseId"`
	PromiseTimeout int64             `json:"promiseTimeout"`
	PromiseParam   value             `json:"promiseParam"`
	PromiseTags    map[string]string `json:"promiseTags"`
	CreatedAt      int64             `json:"createdAt"`
	NextRunAt      int64             `json:"nextRunAt"`
	LastRunAt      *int64            `json:"lastRunAt,omitempty"`
}

// plus returns a list with one more element, unless it has it already. It does not
// change the list, because clones share it.
func plus(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(slices.Clip(list), s)
}
