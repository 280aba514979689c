package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// The first byte of a snapshot of a Replicated, and of the Machine in it. Older
// versions can be read:
//
//	1  results are failures or empty; failures have no names
//	2  sessions have no openers and do not expire; types have no description, and states no checksums
const (
	snapshotVersion = 3
	machineVersion  = 1
)

// AppendSnapshot appends a snapshot of the Machine to b: the borders, the updates, and
// the state. The definition must have the codecs of updates and states.
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

// appendHead appends everything before the state.
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
		if uint64(n) > math.MaxUint32 { // as uint64, because an int may have 32 bits
			return nil, fmt.Errorf("fsm: update %d: %w", m.cleaned+uint64(i), ErrTooLarge)
		}
		binary.LittleEndian.PutUint32(b[start:], uint32(n))
	}
	return b, nil
}

// Restore replaces the Machine by a snapshot. If it returns an error, which matches
// [ErrDamaged], nothing has changed.
func (m *Machine[S, U, R]) Restore(b []byte) error {
	return m.restore(b, func(b []byte, s *S) error { return m.definition.StateCodec.consume(b, s) })
}

// restore implements Restore. The function state decodes the state, which is the last
// part.
func (m *Machine[S, U, R]) restore(b []byte, state func([]byte, *S) error) error {
	in := newReader(b)
	in.version(machineVersion, machineVersion)
	x := Machine[S, U, R]{cleaned: in.Uint(), definition: m.definition, logged: m.logged, direct: m.direct, checks: m.checks}
	applied, committed, n := in.Uint(), in.Uint(), in.Uint()
	if max(applied, committed) > n || n > math.MaxUint64-x.cleaned {
		in.Fail("invalid borders: %d and %d of %d updates", applied, committed, n)
	}
	x.applied, x.committed = x.cleaned+applied, x.cleaned+committed
	for ; n > 0 && in.Err == nil; n-- {
		var u U
		if b := in.Take(uint64(in.Fixed32())); in.Err == nil {
			if err := m.definition.UpdateCodec.consume(b, &u); err != nil {
				return fmt.Errorf("%w: update: %w", ErrDamaged, err)
			}
			x.log = append(x.log, u)
		}
	}
	if in.Err != nil {
		return in.Err
	}
	if err := state(in.B, &x.state); err != nil {
		return fmt.Errorf("%w: state: %w", ErrDamaged, err)
	}
	*m = x
	return nil
}

// AppendSnapshot appends a snapshot to b: everything that is needed to continue after
// the last entry, with the sessions, the updates that are not committed, and the state.
// It returns an error if the snapshot cannot be decoded.
func (r *Replicated[S, U, R]) AppendSnapshot(b []byte) ([]byte, error) {
	b, start, err := r.appendHead(b)
	if err != nil {
		return nil, err
	}
	if b, err = r.machine.AppendSnapshot(b); err == nil {
		err = r.verifyMachine(b[start:])
	}
	if err != nil {
		return nil, err
	}
	r.replay.advance(append(r.replay.checkpoint[:0], b[start:]...), r.index, r.options.ReplayMax)
	return b, nil
}

// verifyMachine returns an error if a Machine cannot be decoded from its encoding. A
// checkpoint must pass this check before it replaces the entries that lead to it.
func (r *Replicated[S, U, R]) verifyMachine(b []byte) error {
	t := trial[S]{codec: r.definition.StateCodec}
	return t.result(newMachine(r.definition, true).restore(b, t.consume))
}

// appendHead appends everything before the Machine, which starts at start.
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
	b = r.announced.appendTo(fields.AppendText(b, r.recorded))
	b = r.checksums.appendTo(b)
	b = r.sessions.appendTo(b)
	return b, len(b), nil
}

// Restore replaces everything by a snapshot and keeps no reference to it. If it returns
// an error, which matches [ErrDamaged] or [ErrIncompatible], nothing has changed.
func (r *Replicated[S, U, R]) Restore(b []byte) error {
	p, err := r.prepare(b, r.definition.StateCodec.consume)
	if err != nil {
		return err
	}
	p.install(r)
	r.replay.advance(bytes.Clone(b[p.start:]), p.index, r.options.ReplayMax)
	return nil
}

// prepared is a decoded snapshot.
type prepared[S, U, R any] struct {
	machine   *Machine[S, U, R]
	sessions  sessions
	index     uint64
	now       int64
	recorded  string
	announced announced
	checksums checksums
	start     int // where the Machine starts in the snapshot
}

// install replaces the contents of r. The caller must set the checkpoint.
func (p *prepared[S, U, R]) install(r *Replicated[S, U, R]) {
	r.machine, r.sessions, r.now, r.recorded, r.index, r.err = p.machine, p.sessions, p.now, p.recorded, p.index, nil
	p.checksums.voters, p.checksums.off = r.checksums.voters, r.checksums.off
	p.announced.members = r.announced.members
	p.announced.allowed = newAllowed(p.recorded, r.description, &p.announced)
	r.checksums, r.announced = p.checksums, p.announced
	r.replay = replay{open: noCheckpoint}
	if r.listener != nil {
		r.listener.Restored(p.index)
	}
}

// prepare decodes a snapshot. It changes nothing, and reads only fields of r that never
// change, so it may run while entries are applied. The function state decodes the
// state, which is the last part.
func (r *Replicated[S, U, R]) prepare(b []byte, state func([]byte, *S) error) (*prepared[S, U, R], error) {
	in := newReader(b)
	version := in.version(1, snapshotVersion)
	in.limits(version, r.options)
	index, now := in.Uint(), in.Int()
	if index > indexMax {
		in.Fail("index %d is too large", index)
	}
	var recorded string
	var announced announced
	var checksums checksums
	if version >= openersVersion {
		recorded = in.Text(descriptionMax + limitsMax)
		announced, checksums = in.announced(), in.checksums(index)
	}
	if in.Err != nil {
		return nil, in.Err
	}
	if err := Compatible(recorded, r.description); err != nil {
		return nil, err
	}
	known := (&sessionReader{reader: &in, version: version, index: index, options: r.options, known: r.sentinels}).sessions()
	if in.Err != nil {
		return nil, in.Err
	}
	m, start := newMachine(r.definition, true), len(b)-len(in.B)
	if err := m.restore(in.B, state); err != nil {
		return nil, err
	}
	if m.applied != m.end() || m.cleaned != m.committed || len(m.log) > r.options.Upcoming {
		return nil, fmt.Errorf("%w: invalid counts: %d updates, %d applied, %d committed", ErrDamaged, len(m.log), m.applied-m.cleaned, m.committed-m.cleaned)
	}
	for i := range announced.list {
		if announced.list[i].text == r.description {
			announced.list[i].text = r.description
		}
	}
	return &prepared[S, U, R]{m, known, index, now, recorded, announced, checksums, start}, nil
}

// limits compares the limits of the snapshot with the options of this program.
func (r *reader) limits(version byte, o Options) {
	limits := o.replicated()
	list := limits[:]
	if version < openersVersion {
		list = list[:len(list)-1]
	}
	for _, limit := range list {
		if v := r.Uint(); v != limit.value {
			r.Fail("the snapshot was made with Options.%s %d, and this program has %d", limit.name, v, limit.value)
		}
	}
}

// version reads the version of a snapshot and checks that this program knows it.
func (r *reader) version(oldest, newest byte) byte {
	v := r.Byte()
	if r.Err == nil && (v < oldest || v > newest) {
		r.Fail("a snapshot must have version %[2]d to %[3]d, got %[1]d", v, oldest, newest)
	}
	return v
}
