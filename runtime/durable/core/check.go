package core

import (
	"fmt"
)

// A Violation is an entry of the store that breaks an invariant.
type Violation struct {
	Invariant string // a name of the protocol, such as orphan_invokes, or of this package
	ID        string // the promise, task, schedule or address
	Detail    string
}

func (v Violation) String() string { return v.Invariant + ": " + quote(v.ID) + ": " + v.Detail }

// violationsMax is the number of violations after which [Check] ends. A store with so many
// has one cause.
const violationsMax = 1_000

// Check returns the violations of the invariants of a store, at most 1,000. It reads the
// whole store. Its memory grows with the number of callbacks and of addresses with
// undelivered messages.
//
// The 13 invariants of the recovery protocol have their names there, with two corrections:
// missing_ptimeout concerns external promises alone, and suspended_no_callback concerns
// tasks whose own deadline has not passed. The names of the formal specification begin
// with well_formed or consistent. The others concern the tables of this package, and
// "corrupt" is an entry that cannot be read.
func Check(kv KV, now Instant) []Violation {
	c := &checker{tx: tx{kv: kv}, now: now, awaiters: map[string]bool{}, messages: map[string]int64{}}
	c.each(Callbacks, c.callback) // before the tasks, which need the awaiters
	c.each(Listeners, c.listener)
	c.each(Promises, c.promiseEntry)
	c.each(PromiseTimeouts, c.promiseTimeout)
	c.each(PromiseStates, c.promiseState)
	c.each(PromiseTags, c.promiseTag)
	c.each(Tasks, c.taskEntry)
	c.each(TaskTimeouts, func(key, _ []byte) { c.taskTimeout(TaskTimeouts, key) })
	c.each(TaskDelays, func(key, _ []byte) { c.taskTimeout(TaskDelays, key) })
	c.each(Resumes, c.resumeEntry)
	c.each(Schedules, c.scheduleEntry)
	c.each(ScheduleTimes, c.scheduleTime)
	c.each(Outbox, c.message) // before the sizes, which need the numbers of messages
	c.each(OutboxSizes, c.outboxSizeEntry)
	c.uncounted()
	c.each(OutboxAges, c.outboxAge)
	return c.violations
}

// checker collects violations. It only reads, so keys and values remain valid.
type checker struct {
	tx
	now        Instant
	violations []Violation
	awaiters   map[string]bool  // of callbacks
	messages   map[string]int64 // by address
}

func (c *checker) full() bool { return len(c.violations) >= violationsMax }

// check records a violation unless holds is true.
func (c *checker) check(holds bool, invariant, id, format string, args ...any) {
	if !holds && !c.full() {
		c.violations = append(c.violations, Violation{invariant, id, fmt.Sprintf(format, args...)})
	}
}

// each calls f for the entries of a table. An entry that cannot be read is a violation,
// and so is an entry that names one.
func (c *checker) each(t Table, f func(key, body []byte)) {
	for key, value := range c.kv.Ascend(t, nil) {
		if c.full() {
			return
		}
		if err := c.entry(t, key, value, f); err != nil {
			c.check(false, "corrupt", shown(t, key), "%v", err)
		}
	}
}

func (c *checker) entry(t Table, key, value []byte, f func(key, body []byte)) (err error) {
	defer catch(&err)
	f(key, unseal(t, key, value))
	return nil
}

// has reports whether a table has an entry.
func (c *checker) has(t Table, key []byte) bool { return c.get(t, key) != nil }

// time splits the key of an index by time.
func (c *checker) time(t Table, key []byte) entry {
	at, id, ok := splitTime(key)
	if !ok {
		panic(corrupt(t, key, "the key has no time"))
	}
	return entry{at, string(id)}
}
