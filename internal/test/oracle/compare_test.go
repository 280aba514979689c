package oracle

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A divergence is the first step after which the oracle and the core differ.
type divergence struct {
	step         int
	subject      string
	oracle, core string
}

// comparison carries out a sequence on both implementations.
type comparison struct {
	sequence
	oracle    *Server
	committed *Server
	core      *core.Core
	store     *store.Memory
	oracleAt  cursors
	coreAt    cursors
	coverage  coverage
	passed    int64 // of the last result of the core
	found     *divergence
}

var errCrash = errors.New("crash")

// compare carries out a sequence. It returns the first difference, or nil.
func compare(s sequence, c coverage) *divergence {
	state := core.Config{RetryTimeout: s.config.RetryTimeout, UnblocksMax: s.config.UnblocksMax, MissedMax: s.config.MissedMax, UnblockAge: never, Strict: s.config.Strict}
	machine, err := core.New(state)
	if err != nil {
		panic(err)
	}
	d := &comparison{sequence: s, oracle: New(s.config), core: machine, store: store.NewMemory(), coverage: c, oracleAt: cursors{}, coreAt: cursors{}}
	d.committed = d.oracle.Clone()
	for i := 0; i < len(s.steps) && d.found == nil; {
		i = d.transaction(i)
	}
	return d.found
}

// transaction carries out the steps from i to the end of a transaction, and returns the
// number of the step after it.
func (d *comparison) transaction(i int) int {
	err := d.store.Update(func(tx store.Tx) error {
		for ; i < len(d.steps); i++ {
			d.oracleAt.before(d.steps[i], d.steps[max(0, i-1)])
			d.coreAt.before(d.steps[i], d.steps[max(0, i-1)])
			switch d.steps[i].action {
			case commit:
				d.committed = d.oracle.Clone()
				return nil
			case crash:
				if len(d.oracle.promises) > len(d.committed.promises) {
					d.coverage.add("crash that loses promises")
				}
				d.oracle = d.committed.Clone()
				return errCrash
			}
			if d.carryOut(i, tx); d.found != nil {
				return nil
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errCrash) {
		d.found = &divergence{step: i, subject: "commit", core: err.Error()}
	}
	return i + 1
}

// carryOut carries out a step on both, and compares.
func (d *comparison) carryOut(i int, tx store.Tx) {
	s := d.steps[i]
	defer func() {
		if p := recover(); p != nil && d.found == nil {
			d.found = &divergence{step: i, subject: "panic", core: fmt.Sprint(p)}
		}
	}()
	differ := func(subject, oracle, core string) {
		if oracle != core && d.found == nil {
			d.found = &divergence{i, subject, oracle, core}
		}
	}
	kv := &countingKV{Tx: tx}
	now := core.Instant{Wall: s.wall, Run: s.run}
	before, cause := d.oracle.Clone(), "tick"
	var sent []Sent
	var effects []core.Effect
	switch s.action {
	case tick:
		sent = d.oracle.Tick(s.wall, s.run)
		effects = d.repeat(kv, core.Tick{Limit: s.limit}, now)
	case deliver:
		d.oracle.Delivered(s.promise, s.address)
		effects = d.repeat(kv, core.Delivered{Promise: s.promise, Address: s.address}, now)
	case request:
		var oracle, result []byte
		oracle, sent = d.oracle.Apply(s.wall, s.run, s.body(d.oracleAt))
		result, effects = d.respond(s, kv, now)
		if kind := s.request["kind"].(string); kv.writes == 0 && !strings.HasPrefix(kind, "debug.") {
			stored := core.Instant{Wall: d.passed, Run: s.run} // the driver stores at least this time, and the next process begins with it
			earlier, _ := d.respond(s, kv, stored)
			differ("response at the time that is stored", canonical(earlier), canonical(result))
		}
		d.oracleAt.after(s, oracle)
		d.coreAt.after(s, result)
		differ("response", canonical(oracle), canonical(result))
		d.coverage.response(oracle)
		cause = s.request["kind"].(string)
		if status := statusOf(result); kv.writes > 0 && (status >= 400 || reads(s.request["kind"])) {
			differ("writes", "0", fmt.Sprint(kv.writes))
		}
	}
	if d.oracle.skipped > 0 {
		d.coverage.add("occurrences that are skipped")
	}
	d.coverage.changes(cause, before, d.oracle, sent)
	differ("messages", messagesOf(sent), effectsOf(effects))
	d.compareStates(kv, now, differ)
}

// respond carries out a request on the core.
func (d *comparison) respond(s step, kv core.KV, now core.Instant) ([]byte, []core.Effect) {
	r, err := protocol.DecodeRequest(s.body(d.coreAt))
	if err != nil {
		return protocol.AppendResponse(nil, &r, &protocol.Result{Status: protocol.BadRequest, Error: err.Error()}), nil
	}
	if t, isTick := r.Op.(protocol.DebugTick); isTick {
		now = core.Instant{Wall: t.Time, Run: t.Time}
	}
	result, effects := d.core.Step(kv, r.Op, now)
	d.passed = result.Passed
	if result.More {
		effects = append(effects, d.repeat(kv, r.Op, now)...)
	}
	return protocol.AppendResponse(nil, &r, &result), effects
}

// repeat carries out an operation until nothing is due.
func (d *comparison) repeat(kv core.KV, op protocol.Operation, now core.Instant) (effects []core.Effect) {
	for {
		result, sent := d.core.Step(kv, op, now)
		effects = append(effects, sent...)
		if result.Status != protocol.OK {
			panic(fmt.Sprintf("%s: %d %s", op.Kind(), result.Status, result.Error))
		}
		if !result.More {
			return effects
		}
	}
}

// compareStates compares everything that both have stored, and checks the invariants.
func (d *comparison) compareStates(kv core.KV, now core.Instant, differ func(subject, oracle, core string)) {
	snap := object{"kind": "debug.snap", "head": object{"corrId": "snap", "version": version}, "data": object{}}
	d.oracle.begin(now.Wall, now.Run)
	snapshot, _ := d.core.Step(kv, protocol.DebugSnap{}, now)
	schedules, _ := d.core.Step(kv, protocol.ScheduleSearch{Limit: 100}, now)
	if !d.oracle.same(snapshot.Snapshot, schedules.Schedules) {
		body := step{request: snap}.body(nil)
		oracle, _ := d.oracle.Apply(now.Wall, now.Run, body)
		result, _ := d.respond(step{request: snap}, kv, now)
		differ("state", lines(oracle), lines(result))
		ours := object{}
		for _, s := range schedules.Schedules {
			ours[s.ID] = s
		}
		differ("schedules", canonical(encode(d.oracle.schedules)), canonical(encode(ours)))
		differ("state", "equal", "not equal, although all lines are: the comparison is wrong")
	}
	differ("messages to send at a start", d.oracle.executes(), executes(kv, now))
	differ("the time to the next timeout", fmt.Sprint(d.oracle.due()), fmt.Sprint(d.due(kv, now)))
	for _, v := range core.Check(kv, now) {
		differ("invariants", "", v.String())
	}
}

// executes returns the messages of all pending tasks that were dispatched before. A Tick
// dispatches those whose delay has passed since.
func (s *Server) executes() string {
	var all []string
	for id := range s.tasks {
		if t, p, _ := s.task(id); t.State == "pending" && t.delay == nil {
			all = append(all, fmt.Sprintln(p.Tags["resonate:target"], id, t.Version))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func executes(kv core.KV, now core.Instant) string {
	var all []string
	for e, err := range core.Executes(kv, now) {
		if err != nil {
			panic(err)
		}
		all = append(all, fmt.Sprintln(e.Address, e.Message.Execute.ID, e.Message.Execute.Version))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// due returns in how many milliseconds a Tick has work to do, -1 if nothing is scheduled.
func (s *Server) due() int64 {
	soonest := int64(-1)
	for _, t := range s.timers() {
		if t.silent {
			continue
		}
		wait := t.at - s.wall
		if t.run {
			wait = t.at - s.run
		}
		if wait = max(wait, 0); soonest < 0 || wait < soonest {
			soonest = wait
		}
	}
	return soonest
}

// never is the age at which the core drops unblock messages: longer than a sequence. The
// oracle keeps them.
const never = 364 * 24 * 3600e3

// due returns in how many milliseconds a Tick of the core has work to do.
func (d *comparison) due(kv core.KV, now core.Instant) int64 {
	wait, scheduled := core.Next(kv, now)
	oracle := d.oracle.due()
	switch later := oracle < 0 || oracle > wait; {
	case !scheduled:
		return -1
	case later && wait > never/2:
		return oracle // the core looks for messages to drop
	}
	return wait
}

// countingKV counts the writes of a step.
type countingKV struct {
	store.Tx
	writes int
}

func (kv *countingKV) Put(t core.Table, key, value []byte) { kv.writes++; kv.Tx.Put(t, key, value) }
func (kv *countingKV) Delete(t core.Table, key []byte)     { kv.writes++; kv.Tx.Delete(t, key) }
func (kv *countingKV) Ascend(t core.Table, from []byte) iter.Seq2[[]byte, []byte] {
	return kv.Tx.Ascend(t, from)
}

// reads reports whether operations of a kind only read.
func reads(kind any) bool {
	name, _ := kind.(string)
	return strings.HasSuffix(name, ".get") || strings.HasSuffix(name, ".search") || name == "debug.snap"
}

// messagesOf returns the messages of the oracle as sorted lines.
func messagesOf(sent []Sent) string {
	var lines []string
	for _, s := range sent {
		lines = append(lines, line(s.Address, s.Message, s.Dropped))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// effectsOf returns the messages of the core as sorted lines.
func effectsOf(effects []core.Effect) string {
	var lines []string
	for _, e := range effects {
		lines = append(lines, line(e.Address, protocol.AppendMessage(nil, &e.Message, ""), e.Dropped))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func line(address string, message []byte, dropped bool) string {
	if dropped {
		address += " (dropped)"
	}
	return address + " " + canonical(message)
}
