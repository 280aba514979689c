package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Replicated is a state machine that applies the entries of a log, with the sessions of
// the proposers. Equal entries have equal effects on every replica. It must be used by
// one goroutine at a time.
//
// It keeps a checkpoint, which is the encoded state, and the entries since then. After
// an update that panics, the state is rebuilt from them without this update.
type Replicated[S, U, R any] struct {
	definition *Definition[S, U, R]
	options    Options
	sentinels  *sentinels
	writes     bool // updates return a value

	machine   *Machine[S, U, R]
	sessions  sessions
	checksums checksums
	index     uint64 // of the last entry
	now       int64  // the time of the last entry
	replay    replay
	version   byte // of the entry that is being applied
	checks    *checks
	twins     *checks
	listener  Listener
	err       error // not nil: nothing more can be applied

	description string // of this program
	recorded    string // in the log
	announced   announced

	errSessions error // returned when there are too many sessions
	errResults  error // returned when a session keeps too many results

	command command // being executed
	update  U       // of the command being executed
	result  R       // of this update
	written []byte  // the encoded result
	arena   resultArena
}

// NewReplicated returns a Replicated with a zero state, before any entry. It panics if
// [Definition.CheckLogged] returns an error.
func NewReplicated[S, U, R any](d Definition[S, U, R], o Options) *Replicated[S, U, R] {
	must(d.CheckLogged())
	r := &Replicated[S, U, R]{
		definition: &d, options: o.withDefaults(), sentinels: newSentinels(d.Errors), writes: d.hasResult(),
		machine: newMachine(&d, true),
	}
	r.errSessions = fmt.Errorf("%w: there are %d sessions of clients, all used within %v", ErrTooMany, r.options.Sessions, r.options.SessionTTL)
	r.errResults = fmt.Errorf("%w: the session keeps more results than its share: raise its floor", ErrTooMany)
	r.description = d.Description + r.options.describe()
	r.checksums.off = r.options.NoChecksums
	r.replay.limit(0, r.options.ReplayMax)
	if checked() {
		r.checks, r.twins = newChecks(checkedBytes), newChecks(checkedTwins)
	}
	return r
}

// Apply applies the commands of an entry, which must have a higher index than the last
// one. It keeps no reference to data. If result is not nil, it is called for each
// command in order, right after the command was applied. For a repeated command it gets
// the first result.
//
// After an error other than [ErrApplied] the Replicated only accepts a snapshot. Either
// data is not a [Batch] of a known version, or Update is not deterministic.
func (r *Replicated[S, U, R]) Apply(index, term uint64, data []byte, result func(client, sequence uint64, a Applied)) error {
	if r.err != nil {
		return r.err
	}
	if index <= r.index {
		return fmt.Errorf("%w: entry %d, after %d", ErrApplied, index, r.index)
	}
	if err := r.apply(index, term, data, result); err != nil {
		r.err = fmt.Errorf("entry %d: %w", index, err)
		return r.err
	}
	return nil
}

func (r *Replicated[S, U, R]) apply(index, term uint64, data []byte, result func(uint64, uint64, Applied)) error {
	if index > indexMax {
		return fmt.Errorf("%w: the index is too large", ErrDamaged)
	}
	r.index = index
	if len(data) == 0 {
		return nil // an entry of the log itself
	}
	in := newReader(data)
	version, now := in.entry()
	before := r.now
	r.version, r.now = version, max(r.now, now)
	if version >= openersVersion {
		r.sessions.tick(r.now-before, int64(r.options.SessionTTL))
	}
	e := Entry{Index: index, Term: term, Time: r.now}
	r.replay.add(e, in.B)
	r.checksums.bytes += len(data)
	c := &r.command
	for *c = (command{}); in.next(c); e.Position++ {
		if e.Position == CommandsMax {
			return fmt.Errorf("%w: more than %d commands", ErrDamaged, CommandsMax)
		}
		a := Applied{Index: index, Term: term}
		if err := r.run(c, e, &a); err != nil {
			return err
		}
		if result != nil && c.kind < commandMark {
			result(c.client, c.sequence, a)
		}
	}
	c.update, c.name = nil, nil // they point into data
	switch {
	case in.Err != nil:
	case r.checksums.marking:
		r.mark()
	case r.replay.long():
		r.checkpoint(logged{})
	}
	return in.Err
}

// run executes a command and stores its result in a. A repeated command is not executed
// and gets its first result. The returned error stops the replica.
func (r *Replicated[S, U, R]) run(c *command, e Entry, a *Applied) error {
	at := position(e.Index, e.Position)
	if opensSession(c.kind) {
		return r.open(c, e, a)
	}
	if c.kind >= commandDescribe {
		return r.executeNote(c, a)
	}
	s := r.sessions.find(c.client)
	if s == nil {
		a.Err = ErrSessionExpired
		r.replay.skip(at)
		return nil
	}
	r.sessions.raise(s, c.floor)
	i, done := s.find(c.sequence)
	switch {
	case c.sequence < s.floor:
		a.Err = ErrStale
	case c.sequence-s.floor >= uint64(r.options.Window):
		a.Err = ErrWindow
	case done:
		*a = s.kept()[i].applied()
	default:
		return r.executeNew(s, i, c, e, a)
	}
	r.replay.skip(at)
	return nil
}

// executeNew executes a command that is not a repetition. i is the place of
// its result in the session.
func (r *Replicated[S, U, R]) executeNew(s *session, i int, c *command, e Entry, a *Applied) error {
	known := result{sequence: c.sequence, index: a.Index, term: a.Term}
	var failed, err error
	if r.version >= openersVersion && r.sessions.resultsFull(s, &r.options) {
		r.replay.skip(position(e.Index, e.Position))
		failed = r.errResults
	} else if known.outcome, failed, err = r.execute(c, e); err != nil {
		return err
	}
	if failed != nil {
		known.outcome = r.sentinels.outcome(failed)
		if a.Err = failed; !OutcomeKnown(failed) {
			a.Err = known.failure // keep only the text: the outcome is known
		}
	} else {
		if known.outcome != nil {
			a.Data = known.value
		}
		if r.listener != nil && c.kind == commandUpdate {
			r.listener.Applied(e, a.Term, c.update, a.Data)
		}
	}
	if r.version < openersVersion {
		r.sessions.keepUnbounded(s, i, &known, r.options.Results)
	} else {
		r.sessions.keep(s, i, &known)
	}
	return nil
}

// executeNote executes a command of a node that has no session.
func (r *Replicated[S, U, R]) executeNote(c *command, a *Applied) error {
	if r.version < openersVersion {
		return fmt.Errorf("%w: command of kind %d in an entry of version %d", ErrDamaged, c.kind, r.version)
	}
	r.checksums.notes++
	switch c.kind {
	case commandDescribe:
		return r.describe(c.node, string(c.name), a)
	case commandMark:
		r.checksums.marking = true
		return nil
	}
	return r.checksums.vote(c.client, c.sequence, binary.LittleEndian.Uint64(c.name))
}

// Description says how this program encodes states and updates, and under which limits:
// the description of the definition, and a line for each limit. A node writes it to the
// log when it starts, see [Batch.Describe].
func (r *Replicated[S, U, R]) Description() string { return r.description }

// Recorded returns the description in the log, or "".
func (r *Replicated[S, U, R]) Recorded() string { return r.recorded }

// open opens a session.
func (r *Replicated[S, U, R]) open(c *command, e Entry, a *Applied) error {
	at := position(e.Index, e.Position)
	if (c.kind == commandOpen) != (r.version < openersVersion) {
		return fmt.Errorf("%w: command of kind %d in an entry of version %d", ErrDamaged, c.kind, r.version)
	}
	var s *session
	switch c.kind {
	case commandOpen:
		s = r.sessions.openUnbounded(at, r.options.Sessions)
	case commandOpenClient:
		s = r.sessions.open(at, opener{client: string(c.name), nonce: c.client}, r.options.Sessions)
	case commandOpenNode:
		s = r.sessions.open(at, opener{node: c.node, nonce: c.client}, r.options.Sessions)
	}
	if s == nil {
		a.Err = r.errSessions
	} else {
		a.Client = s.number
	}
	return nil
}

// execute executes a command and returns the value of an update, or nil. If failed is
// not nil, the command changed nothing. The error err stops the replica.
func (r *Replicated[S, U, R]) execute(c *command, e Entry) (value *outcome, failed, err error) {
	at := position(e.Index, e.Position)
	switch c.kind {
	case commandCommit:
		r.machine.Commit()
		r.machine.Cleanup()
		return nil, nil, nil
	case commandAdd:
		if len(r.machine.log) >= r.options.Upcoming {
			r.replay.skip(at)
			return nil, ErrTooMany, nil
		}
	}
	twin := r.twin()
	failed, err = r.executeOn(r.machine, c, e)
	if failed == nil && err == nil && r.writes && c.kind != commandRevert {
		value, failed, err = r.write()
	}
	if twin != nil && failed == nil && err == nil {
		err = r.sameAs(twin, c, e)
	}
	if failed == nil || err != nil {
		return value, nil, err
	}
	if r.undoes(c, failed) {
		err := r.restore(at)
		r.replay.skip(at)
		return nil, failed, err
	}
	if r.checks != nil {
		if err := r.unchanged(at, c, e, failed); err != nil {
			return nil, nil, err
		}
	}
	r.replay.fail(at)
	return nil, failed, nil
}

// undoes reports whether a failed command must be undone, because it may have changed
// the state.
func (r *Replicated[S, U, R]) undoes(c *command, failed error) bool {
	return c.kind == commandRevert || r.version == 1 || errors.Is(failed, ErrPanicked) || errors.Is(failed, ErrResult)
}

// executeOn executes a command on m: the replica's own Machine, or a rebuilt one. The
// value of an update is then in r.result. The error err stops the replica.
func (r *Replicated[S, U, R]) executeOn(m *Machine[S, U, R], c *command, e Entry) (failed, err error) {
	switch c.kind {
	case commandUpdate:
		if err := r.consume(c.update); err != nil {
			return nil, err
		}
		r.result, failed = m.propose(&r.update, e)
		return failed, nil
	case commandAdd:
		if err := r.consume(c.update); err != nil {
			return nil, err
		}
		m.Add(r.update)
		if r.result, failed = m.step(e); failed != nil {
			m.truncate(m.applied)
			return failed, nil
		}
	case commandCommit:
		m.Commit()
		m.Cleanup()
	case commandRevert:
		return m.Revert(), nil
	}
	return nil, nil
}

// write encodes r.result. The error err stops the replica.
func (r *Replicated[S, U, R]) write() (value *outcome, failed, err error) {
	var zero R
	b, failed := r.definition.ResultCodec.append(r.written[:0], &r.result)
	if failed == nil && r.checks != nil {
		_, err = r.definition.ResultCodec.Encode(nil, &r.result, new(R))
	}
	r.result = zero // releases what it points to, which may be large
	switch {
	case err != nil:
		return nil, nil, err
	case failed != nil:
		return nil, fmt.Errorf("%w: a %T cannot be encoded: %w", ErrResult, zero, failed), nil
	case len(b) > resultBytesMax:
		r.written = nil
		return nil, fmt.Errorf("%w: a %T must have at most %[4]d bytes, got %[3]d", ErrResult, zero, len(b), resultBytesMax), nil
	}
	r.written = b
	return r.arena.keep(b), nil, nil
}

// consume decodes an update into r.update.
func (r *Replicated[S, U, R]) consume(b []byte) error {
	var zero U
	r.update = zero
	if err := r.definition.UpdateCodec.consume(b, &r.update); err != nil {
		return fmt.Errorf("%w: update: %w", ErrDamaged, err)
	}
	return nil
}

// View calls f with the state. f must not change it or keep a pointer into it.
func (r *Replicated[S, U, R]) View(f func(*S)) { f(r.machine.State()) }

// Applied returns the index of the last entry; 0 before the first.
func (r *Replicated[S, U, R]) Applied() uint64 { return r.index }

// Upcoming returns copies of the updates that were added and are not committed, oldest
// first, see the message [Upcoming].
func (r *Replicated[S, U, R]) Upcoming() []U { return r.machine.Upcoming() }

// Sessions returns the number of sessions.
func (r *Replicated[S, U, R]) Sessions() int { return len(r.sessions.byNumber) }

// position returns the position of a command in the log.
func position(index uint64, in int) uint64 { return index<<positionBits | uint64(in) }
