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
//	2  sessions have no openers, and do not age; types have no description, and states no checksums
const (
	snapshotVersion = 3
	machineVersion  = 1
)

// AppendSnapshot appends the machine to b: the borders, the updates, and last the
// state. The definition must have the codecs of both.
func (m *Machine[S, U, R]) AppendSnapshot(b []byte) ([]byte, error) {
	b, err := m.appendHead(b)
	if err != nil {
		return nil, err
	}
	if b, err = m.definition.StateCodec.append(b, &m.state); err != nil {
		return nil, fmt.Errorf("fsm: state: %w", err)
	}
	return b, nil
}

// appendHead appends what is before the state.
func (m *Machine[S, U, R]) appendHead(b []byte) ([]byte, error) {
	b = append(b, machineVersion)
	b = binary.AppendUvarint(b, m.cleaned)
	b = binary.AppendUvarint(b, m.applied-m.cleaned)
	b = binary.AppendUvarint(b, m.committed-m.cleaned)
	b = binary.AppendUvarint(b, uint64(len(m.log)))
	var err error
	for i := range m.log {
		start := len(b)
		b = append(b, 0, 0, 0, 0)
		if b, err = m.definition.UpdateCodec.append(b, &m.log[i]); err != nil {
			return nil, fmt.Errorf("fsm: update %d: %w", m.cleaned+uint64(i), err)
		}
		n := len(b) - start - 4
		if n > math.MaxUint32 {
			return nil, fmt.Errorf("fsm: update %d: %w", m.cleaned+uint64(i), ErrTooLarge)
		}
		binary.LittleEndian.PutUint32(b[start:], uint32(n))
	}
	return b, nil
}

// Restore replaces the machine by a snapshot. After an error, which matches
// [ErrDamaged], nothing has changed.
func (m *Machine[S, U, R]) Restore(b []byte) error {
	return m.restore(b, func(b []byte, s *S) error { return m.definition.StateCodec.consume(b, s) })
}

// restore is Restore, where state reads the state from what is behind the rest.
func (m *Machine[S, U, R]) restore(b []byte, state func([]byte, *S) error) error {
	in := reader{b: b}
	in.version(machineVersion, machineVersion)
	x := Machine[S, U, R]{cleaned: in.uint(), definition: m.definition, logged: m.logged, direct: m.direct, checks: m.checks}
	applied, committed, n := in.uint(), in.uint(), in.uint()
	if max(applied, committed) > n || n > math.MaxUint64-x.cleaned {
		in.fail("borders %d and %d of %d updates", applied, committed, n)
	}
	x.applied, x.committed = x.cleaned+applied, x.cleaned+committed
	for ; n > 0 && in.err == nil; n-- {
		var u U
		if b := in.sized(); in.err == nil {
			if err := m.definition.UpdateCodec.consume(b, &u); err != nil {
				return fmt.Errorf("%w: update: %w", ErrDamaged, err)
			}
			x.log = append(x.log, u)
		}
	}
	if in.err != nil {
		return in.err
	}
	if err := state(in.b, &x.state); err != nil {
		return fmt.Errorf("%w: state: %w", ErrDamaged, err)
	}
	*m = x
	return nil
}

// AppendSnapshot appends all that is to be known after the last entry: the
// sessions, the updates that are not committed, and the state.
func (r *Replicated[S, U, R]) AppendSnapshot(b []byte) ([]byte, error) {
	b, start, err := r.appendHead(b)
	if err != nil {
		return nil, err
	}
	if b, err = r.machine.AppendSnapshot(b); err != nil {
		return nil, err
	}
	r.replay.advance(append(r.replay.checkpoint[:0], b[start:]...), r.index, r.options.ReplayMax)
	return b, nil
}

// appendHead appends what is before the machine, which begins at start.
func (r *Replicated[S, U, R]) appendHead(b []byte) (_ []byte, start int, err error) {
	if r.err != nil {
		return nil, 0, r.err
	}
	b = append(b, snapshotVersion)
	for _, limit := range r.options.replicated() {
		b = binary.AppendUvarint(b, limit.value)
	}
	b = binary.AppendUvarint(b, r.index)
	b = binary.AppendVarint(b, r.now)
	b = r.announced.appendTo(appendText(b, r.recorded))
	b = r.checksums.appendTo(b)
	b = r.sessions.appendTo(b)
	return b, len(b), nil
}

// Restore replaces everything by a snapshot, of which nothing is kept. After an
// error, which matches [ErrDamaged] or [ErrIncompatible], nothing has changed.
func (r *Replicated[S, U, R]) Restore(b []byte) error {
	p, err := r.prepare(b, r.definition.StateCodec.consume)
	if err != nil {
		return err
	}
	p.install(r)
	r.replay.advance(bytes.Clone(b[p.start:]), p.index, r.options.ReplayMax)
	return nil
}

// prepared is what a snapshot says.
type prepared[S, U, R any] struct {
	machine   *Machine[S, U, R]
	sessions  sessions
	index     uint64
	now       int64
	recorded  string
	announced announced
	checksums checksums
	start     int // where the machine begins in the snapshot
}

// install replaces everything. The checkpoint is to be set.
func (p *prepared[S, U, R]) install(r *Replicated[S, U, R]) {
	r.machine, r.sessions, r.now, r.recorded, r.err = p.machine, p.sessions, p.now, p.recorded, nil
	if r.index = p.index; bug.On(bug.AppliedAfterRestart) {
		r.index = 0
	}
	p.checksums.voters, p.checksums.off = r.checksums.voters, r.checksums.off
	p.announced.members = r.announced.members
	p.announced.allowed = newAllowed(p.recorded, r.description, &p.announced)
	r.checksums, r.announced = p.checksums, p.announced
	r.replay = replay{open: noCheckpoint}
	if r.listener != nil {
		r.listener.Restored(p.index)
	}
}

// prepare reads a snapshot. It changes nothing, and reads nothing of r that changes. state
// reads the state from what is behind the rest.
func (r *Replicated[S, U, R]) prepare(b []byte, state func([]byte, *S) error) (*prepared[S, U, R], error) {
	in := reader{b: b}
	version := in.version(1, snapshotVersion)
	in.limits(version, r.options)
	index, now := in.uint(), in.int()
	if index > indexMax {
		in.fail("index %d", index)
	}
	var recorded string
	var announced announced
	var checksums checksums
	if version >= openersVersion {
		recorded = in.text("a description", descriptionMax+limitsMax)
		announced, checksums = in.announced(), in.checksums(index)
	}
	if in.err != nil {
		return nil, in.err
	}
	if err := Compatible(recorded, r.description); err != nil {
		return nil, err
	}
	known := (&sessionReader{reader: &in, version: version, index: index, options: r.options, known: r.sentinels}).sessions()
	if in.err != nil {
		return nil, in.err
	}
	m, start := newMachine(r.definition, true), len(b)-len(in.b)
	if err := m.restore(in.b, state); err != nil {
		return nil, err
	}
	if m.applied != m.end() || m.cleaned != m.committed || len(m.log) > r.options.Upcoming {
		return nil, fmt.Errorf("%w: %d updates, applied %d, committed %d", ErrDamaged, len(m.log), m.applied-m.cleaned, m.committed-m.cleaned)
	}
	for i := range announced.list {
		if announced.list[i].text == r.description {
			announced.list[i].text = r.description
		}
	}
	return &prepared[S, U, R]{m, known, index, now, recorded, announced, checksums, start}, nil
}

// meaning compares the limits that a snapshot was made under with those here.
func (r *reader) limits(version byte, o Options) {
	limits := o.replicated()
	list := limits[:]
	if version < openersVersion {
		list = list[:len(list)-1]
	}
	for _, limit := range list {
		if v := r.uint(); v != limit.value {
			r.fail("the snapshot was made with Options.%s %d, and here it is %d", limit.name, v, limit.value)
		}
	}
}

// version reads the version of a snapshot, of those that this program knows.
func (r *reader) version(oldest, newest byte) byte {
	v := r.byte()
	if r.err == nil && (v < oldest || v > newest) {
		r.fail("version %d of a snapshot; this program knows %d to %d", v, oldest, newest)
	}
	return v
}
