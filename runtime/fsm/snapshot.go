package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/topogen/topogen/runtime/internal/bug"
)

// The first byte of a snapshot: of a Replicated, and of the machine in it. Older
// versions are read too:
//
//	1  results are failures, or nothing; failures have no names
const (
	snapshotVersion = 2
	machineVersion  = 1
)

// AppendSnapshot appends the machine to b: the borders, the updates, and last the
// state. The definition must have the codecs of both.
func (m *Machine[S, U, R]) AppendSnapshot(b []byte) ([]byte, error) {
	b = append(b, machineVersion)
	b = binary.AppendUvarint(b, m.cleaned)
	b = binary.AppendUvarint(b, m.applied-m.cleaned)
	b = binary.AppendUvarint(b, m.committed-m.cleaned)
	b = binary.AppendUvarint(b, uint64(len(m.log)))
	var err error
	for i := range m.log {
		start := len(b)
		b = append(b, 0, 0, 0, 0)
		if b, err = m.of.UpdateCodec.append(b, &m.log[i]); err != nil {
			return nil, fmt.Errorf("fsm: update %d: %w", m.cleaned+uint64(i), err)
		}
		n := len(b) - start - 4
		if n > math.MaxUint32 {
			return nil, fmt.Errorf("fsm: update %d: %w", m.cleaned+uint64(i), ErrTooLarge)
		}
		binary.LittleEndian.PutUint32(b[start:], uint32(n))
	}
	if b, err = m.of.StateCodec.append(b, &m.state); err != nil {
		return nil, fmt.Errorf("fsm: state: %w", err)
	}
	return b, nil
}

// Restore replaces the machine by a snapshot. After an error, which matches
// [ErrDamaged], nothing has changed.
func (m *Machine[S, U, R]) Restore(b []byte) error {
	in := reader{b: b}
	in.version(machineVersion, machineVersion)
	x := Machine[S, U, R]{cleaned: in.uint(), of: m.of, logged: m.logged, direct: m.direct, checks: m.checks}
	applied, committed, n := in.uint(), in.uint(), in.uint()
	if max(applied, committed) > n || n > math.MaxUint64-x.cleaned {
		in.fail("borders %d and %d of %d updates", applied, committed, n)
	}
	x.applied, x.committed = x.cleaned+applied, x.cleaned+committed
	for ; n > 0 && in.err == nil; n-- {
		var u U
		if b := in.sized(); in.err == nil {
			if err := m.of.UpdateCodec.consume(b, &u); err != nil {
				return fmt.Errorf("%w: update: %w", ErrDamaged, err)
			}
			x.log = append(x.log, u)
		}
	}
	if in.err != nil {
		return in.err
	}
	if err := m.of.StateCodec.consume(in.b, &x.state); err != nil {
		return fmt.Errorf("%w: state: %w", ErrDamaged, err)
	}
	*m = x
	return nil
}

// AppendSnapshot appends all that is to be known after the last entry: the
// sessions, the updates that are not committed, and the state.
func (r *Replicated[S, U, R]) AppendSnapshot(b []byte) ([]byte, error) {
	if r.broken != nil {
		return nil, r.broken
	}
	b = append(b, snapshotVersion)
	for _, limit := range r.options.meaning() {
		b = binary.AppendUvarint(b, uint64(limit))
	}
	b = binary.AppendUvarint(b, r.index)
	b = binary.AppendVarint(b, r.now)
	b = r.sessions.appendTo(b)
	start := len(b)
	b, err := r.machine.AppendSnapshot(b)
	if err != nil {
		return nil, err
	}
	r.replay.moveOn(append(r.replay.checkpoint[:0], b[start:]...), r.options.ReplayMax)
	return b, nil
}

// Restore replaces everything by a snapshot, of which nothing is kept. After an
// error, which matches [ErrDamaged], nothing has changed.
func (r *Replicated[S, U, R]) Restore(b []byte) error {
	in := reader{b: b}
	version := in.version(1, snapshotVersion)
	for _, limit := range r.options.meaning() {
		if v := in.uint(); v != uint64(limit) {
			in.fail("made under the limit %d, which is %d here", v, limit)
		}
	}
	index, now := in.uint(), in.int()
	if index > indexMax {
		in.fail("index %d", index)
	}
	known := in.sessions(version, index, r.options, r.sentinels)
	if in.err != nil {
		return in.err
	}
	m := newMachine(r.of, true)
	if err := m.Restore(in.b); err != nil {
		return err
	}
	if m.applied != m.end() || m.cleaned != m.committed || len(m.log) > r.options.Upcoming {
		return fmt.Errorf("%w: %d updates, applied %d, committed %d", ErrDamaged, len(m.log), m.applied-m.cleaned, m.committed-m.cleaned)
	}
	r.machine, r.sessions, r.now, r.broken = m, known, now, nil
	if r.index = index; bug.On(bug.AppliedAfterRestart) {
		r.index = 0
	}
	r.replay = replay{}
	r.replay.moveOn(bytes.Clone(in.b), r.options.ReplayMax)
	return nil
}

// version reads the version of a snapshot, of those that this program knows.
func (r *reader) version(oldest, newest byte) byte {
	v := r.byte()
	if r.err == nil && (v < oldest || v > newest) {
		r.fail("version %d of a snapshot; this program knows %d to %d", v, oldest, newest)
	}
	return v
}

// appendTo appends the sessions, in the order in which they will be forgotten.
func (t *sessions) appendTo(b []byte) []byte {
	if bug.On(bug.SessionsNotInSnapshot) {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(t.of)))
	for s := t.oldest; s != nil; s = s.newer {
		b = binary.AppendUvarint(b, s.client)
		b = binary.AppendUvarint(b, s.floor)
		kept := s.kept()
		b = binary.AppendUvarint(b, uint64(len(kept)))
		for i := range kept {
			b = kept[i].appendTo(b, s.floor)
		}
	}
	return b
}

func (r *result) appendTo(b []byte, floor uint64) []byte {
	b = binary.AppendUvarint(b, r.sequence-floor)
	b = binary.AppendUvarint(b, r.index)
	b = binary.AppendUvarint(b, r.term)
	if r.outcome == nil {
		return append(b, 0, 0)
	}
	if r.failure == nil {
		return appendText(append(b, 0), r.value)
	}
	b = appendText(append(b, r.failure.kind), r.failure.text)
	b = binary.AppendUvarint(b, uint64(len(r.failure.names)))
	for _, name := range r.failure.names {
		b = appendText(b, name)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// sessions reads what appendTo of a version has written, of a log up to an index.
func (r *reader) sessions(version byte, index uint64, o Options, known *sentinels) (t sessions) {
	n := r.uint()
	if n > uint64(o.Sessions) {
		r.fail("%d sessions, of %d", n, o.Sessions)
	}
	for ; n > 0 && r.err == nil; n-- {
		client, floor, results := r.uint(), r.uint(), r.uint()
		if client>>positionBits == 0 || client>>positionBits > index || t.of[client] != nil || floor == 0 {
			r.fail("session %d with floor %d", client, floor)
		}
		s := t.open(client, o.Sessions)
		for s.floor = floor; results > 0 && r.err == nil; results-- {
			r.result(&t, s, version, index, o, known)
		}
	}
	return t
}

func (r *reader) result(t *sessions, s *session, version byte, index uint64, o Options, known *sentinels) {
	above := r.uint()
	v := result{sequence: s.floor + above, index: r.uint(), term: r.uint()}
	if kind := r.byte(); kind != 0 {
		v.outcome = &outcome{failure: r.failure(kind, version, known)}
	} else if version > 1 {
		if value := r.text("a result", resultBytesMax); value != "" {
			v.outcome = &outcome{value: value}
		}
	}
	kept := s.kept()
	ascends := len(kept) == 0 || kept[len(kept)-1].sequence < v.sequence
	if above >= uint64(o.Window) || v.sequence < s.floor || !ascends || v.index == 0 || v.index > index || t.results >= o.Results {
		r.fail("result of sequence %d", v.sequence)
		return
	}
	t.keep(s, len(kept), v, o.Results)
}

// failure reads a failure behind its kind.
func (r *reader) failure(kind, version byte, known *sentinels) *failure {
	if kind >= failureKinds {
		r.fail("failure of kind %d", kind)
	}
	f := &failure{kind: kind, text: r.text("an error", failureTextMax)}
	if version == 1 {
		return f
	}
	n := r.uint()
	if n > sentinelsOfOne {
		r.fail("%d names of an error, at most %d", n, sentinelsOfOne)
	}
	for ; n > 0 && r.err == nil; n-- {
		f.names = append(f.names, r.text("the name of an error", sentinelNameMax))
	}
	known.resolve(f)
	return f
}

// text reads a text of so many bytes at most.
func (r *reader) text(what string, most int) string {
	b := r.bytes()
	if len(b) > most {
		r.fail("%s of %d bytes, at most %d", what, len(b), most)
	}
	return string(b)
}
