package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
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
		b = binary.AppendUvarint(b, limit.value)
	}
	b = binary.AppendUvarint(b, r.index)
	b = binary.AppendVarint(b, r.now)
	b = r.announced.appendTo(appendText(b, r.recorded))
	b = r.sums.appendTo(b)
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
// error, which matches [ErrDamaged] or [ErrIncompatible], nothing has changed.
func (r *Replicated[S, U, R]) Restore(b []byte) error {
	install, err := r.prepare(b)
	if err != nil {
		return err
	}
	install()
	return nil
}

// Snapshot returns what writes a snapshot: all that is to be known after the last entry.
// Where frozen is false, no entry may be applied while it is written.
func (r *Replicated[S, U, R]) Snapshot() (write func(io.Writer) error, frozen bool, err error) {
	if r.broken != nil {
		return nil, false, r.broken
	}
	return func(w io.Writer) error {
		b, err := r.AppendSnapshot(nil)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}, false, nil
}

// Prepare reads all of a snapshot, and returns what makes everything as it says. The
// error of a snapshot that cannot be read matches [ErrDamaged], others are those of in.
// Until install is called nothing has changed: entries may be applied while Prepare runs.
func (r *Replicated[S, U, R]) Prepare(in io.Reader) (install func(), err error) {
	b, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	return r.prepare(b)
}

// prepare reads a snapshot. It changes nothing, and reads nothing of r that changes.
func (r *Replicated[S, U, R]) prepare(b []byte) (install func(), err error) {
	in := reader{b: b}
	version := in.version(1, snapshotVersion)
	in.meaning(version, r.options)
	index, now := in.uint(), in.int()
	if index > indexMax {
		in.fail("index %d", index)
	}
	var recorded string
	var said announced
	var sums sums
	if version >= openersVersion {
		recorded = in.text("a description", descriptionMax+limitsMax)
		said, sums = in.announced(), in.sums(index)
	}
	if in.err != nil {
		return nil, in.err
	}
	if err := Compatible(recorded, r.description); err != nil {
		return nil, err
	}
	known := (&remembered{reader: &in, version: version, index: index, options: r.options, known: r.sentinels}).sessions()
	if in.err != nil {
		return nil, in.err
	}
	m := newMachine(r.of, true)
	if err := m.Restore(in.b); err != nil {
		return nil, err
	}
	if m.applied != m.end() || m.cleaned != m.committed || len(m.log) > r.options.Upcoming {
		return nil, fmt.Errorf("%w: %d updates, applied %d, committed %d", ErrDamaged, len(m.log), m.applied-m.cleaned, m.committed-m.cleaned)
	}
	checkpoint := bytes.Clone(in.b)
	return func() {
		r.machine, r.sessions, r.now, r.recorded, r.broken = m, known, now, recorded, nil
		sums.voters, sums.off = r.sums.voters, r.sums.off
		said.members = r.announced.members
		said.allowed = newAllowed(recorded, r.description, &said)
		r.sums, r.announced = sums, said
		if r.index = index; bug.On(bug.AppliedAfterRestart) {
			r.index = 0
		}
		r.replay = replay{}
		r.replay.moveOn(checkpoint, r.options.ReplayMax)
		if r.listener != nil {
			r.listener.Restored(index)
		}
	}, nil
}

// meaning compares the limits that a snapshot was made under with those here.
func (r *reader) meaning(version byte, o Options) {
	limits := o.meaning()
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
