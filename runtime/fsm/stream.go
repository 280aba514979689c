package fsm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
)

// A snapshot of a state that is encoded in chunks has this form:
//
//	byte 0x81
//	frames: uvarint length, data
//	a frame of length 0
//
// The first frame is a snapshot as AppendSnapshot writes it, without the state. Each of
// the others is a chunk of the state.
const streamed = 0x81 // differs from all snapshot versions

const frameMax = math.MaxInt32 // bytes; the limit of protobuf's libraries

// Freezer is implemented by a state that can be copied faster than it is encoded, for
// example because copies share parts that never change. Its snapshots are encoded while
// updates go on.
type Freezer[S any] interface {
	// Freeze returns a state that equals this one and that later updates do not change.
	// It is called between two updates, which wait for it.
	Freeze() *S
}

// Snapshot returns a function that writes a snapshot: everything that is needed to
// continue after the last entry. If frozen is false, no entry may be applied until the
// snapshot is written.
func (r *Replicated[S, U, R]) Snapshot() (write func(io.Writer) error, frozen bool, err error) {
	b, _, err := r.appendHead(nil)
	if err == nil {
		b, err = r.machine.appendHead(b)
	}
	if err != nil {
		return nil, false, err
	}
	state, frozen := r.machine.State(), false
	if f, ok := any(state).(Freezer[S]); ok {
		if state, err = freeze(f); err != nil {
			return nil, false, err
		}
		frozen = true
	}
	return func(w io.Writer) error { return r.writeSnapshot(w, b, state) }, frozen, nil
}

// freeze calls Freeze and returns a panic as an error.
func freeze[S any](f Freezer[S]) (s *S, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("fsm: Freeze panicked: %v", value)
		} else if s == nil {
			err = errors.New("fsm: Freeze must return a state, got nil")
		}
	}()
	return f.Freeze(), nil
}

// writeSnapshot writes a snapshot. It reads only fields of r that never change.
func (r *Replicated[S, U, R]) writeSnapshot(w io.Writer, head []byte, state *S) error {
	codec := r.definition.StateCodec
	if len(codec.Parts) == 0 {
		b, err := codec.append(head, state)
		if err != nil {
			return fmt.Errorf("fsm: state: %w", err)
		}
		_, err = w.Write(b)
		return err
	}
	out := bufio.NewWriter(w)
	frame := func(b []byte) error {
		if len(b) > frameMax {
			return fmt.Errorf("%w: an entry of the state must have at most %[3]d bytes, got %[2]d", ErrTooLarge, len(b), frameMax)
		}
		if _, err := out.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
			return err
		}
		_, err := out.Write(b)
		return err
	}
	if err := out.WriteByte(streamed); err != nil {
		return err
	}
	if err := frame(head); err != nil {
		return err
	}
	if err := codec.chunks(state, frame); err != nil {
		return fmt.Errorf("fsm: state: %w", err)
	}
	if err := frame(nil); err != nil {
		return err
	}
	return out.Flush()
}

// Prepare decodes a snapshot, and returns a function that installs it. An error matches
// [ErrDamaged] if the snapshot cannot be decoded; otherwise it is an error of in.
// Nothing changes until install is called, so other methods may be called while Prepare
// runs. After install the caller must call [Replicated.Checkpoint].
func (r *Replicated[S, U, R]) Prepare(in io.Reader) (install func(), err error) {
	p, err := r.decode(in, r.definition.StateCodec.consume)
	if err != nil {
		return nil, err
	}
	return func() { p.install(r) }, nil
}

// Verify reads a snapshot that the function of [Replicated.Snapshot] has written, and
// returns an error if [Replicated.Prepare] could not decode it. The error matches
// [ErrCodec] and names the field if the state cannot be decoded. Chunks are decoded one
// by one and dropped. Other methods may be called while Verify runs.
func (r *Replicated[S, U, R]) Verify(in io.Reader) error {
	t := trial[S]{codec: r.definition.StateCodec}
	_, err := r.decode(in, t.consume)
	return t.result(err)
}

// decode decodes a snapshot of either form. The function state decodes the state, or a
// chunk of it.
func (r *Replicated[S, U, R]) decode(from io.Reader, state func([]byte, *S) error) (*prepared[S, U, R], error) {
	in := bufio.NewReader(from)
	first, err := in.Peek(1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(first) == 0 || first[0] != streamed {
		b, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		return r.prepare(b, state)
	}
	_, _ = in.Discard(1) // Peek has read it
	f := frameReader{in: in}
	head, err := f.next()
	if err != nil {
		return nil, err
	}
	return r.prepare(bytes.Clone(head), func(rest []byte, s *S) error {
		if len(rest) > 0 {
			return fmt.Errorf("%d bytes follow where the chunks should begin", len(rest))
		}
		for {
			b, err := f.next()
			if err != nil {
				return err
			}
			if len(b) == 0 {
				break
			}
			if err := state(b, s); err != nil {
				return err
			}
		}
		if _, err := in.ReadByte(); err != io.EOF {
			return errors.Join(errors.New("there is data after its end"), err)
		}
		return nil
	})
}

// frameReader reads frames. The result of next is valid until the next call.
type frameReader struct {
	in  *bufio.Reader
	buf bytes.Buffer
}

func (f *frameReader) next() ([]byte, error) {
	n, err := binary.ReadUvarint(f.in)
	if err == nil && n > frameMax {
		err = fmt.Errorf("a chunk must have at most %[2]d bytes, got %[1]d", n, frameMax)
	}
	if err == nil {
		if f.buf.Reset(); f.buf.Cap() > 4*chunkBytes {
			f.buf = bytes.Buffer{}
		}
		_, err = io.CopyN(&f.buf, f.in, int64(n))
	}
	if err == nil {
		return f.buf.Bytes(), nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("%w: the chunks of a state: %w", ErrDamaged, err)
}

// noCheckpoint is the checkpoint between install and Checkpoint.
func noCheckpoint() (io.ReadCloser, error) { return nil, errors.New("there is no snapshot") }

// Checkpoint names a snapshot that includes all entries up to an index, has size bytes,
// and can be opened repeatedly. It is used to undo an update that panics. Until
// Checkpoint is called, copies of the entries since an earlier checkpoint are kept.
func (r *Replicated[S, U, R]) Checkpoint(index uint64, size int64, open func() (io.ReadCloser, error)) {
	if index < r.replay.since {
		return // there is a newer checkpoint
	}
	r.replay.advanceTo(index, open)
	r.replay.size = int(size)
	if size < largeBytes {
		r.replay.limit(int(size), 2*r.options.ReplayMax) // the next snapshot comes before that
	} else {
		r.replay.entriesMax, r.replay.bytesMax = math.MaxInt, replayBytesMax
	}
}

// advanceTo makes the snapshot up to an index the checkpoint.
func (p *replay) advanceTo(index uint64, open func() (io.ReadCloser, error)) {
	n := sort.Search(len(p.entries), func(i int) bool { return p.entries[i].first.Index > index })
	begin := len(p.commands)
	if n < len(p.entries) {
		begin = p.entries[n].begin
	}
	p.commands = append([]byte(nil), p.commands[begin:]...)
	p.entries = append([]logged(nil), p.entries[n:]...)
	for i := range p.entries {
		p.entries[i].begin -= begin
		p.entries[i].end -= begin
	}
	after := func(list []uint64) []uint64 {
		return list[sort.Search(len(list), func(i int) bool { return list[i]>>positionBits > index }):]
	}
	p.skipped, p.failed = after(p.skipped), after(p.failed)
	p.checkpoint, p.open, p.since = nil, open, index
}

// reopened decodes the Machine from the snapshot that is the checkpoint.
func (r *Replicated[S, U, R]) reopened() (*Machine[S, U, R], error) {
	in, err := r.replay.open()
	if err != nil {
		return nil, fmt.Errorf("fsm: an update cannot be undone: the last snapshot cannot be read: %w", err)
	}
	p, err := r.decode(in, r.definition.StateCodec.consume)
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("fsm: an update cannot be undone: the last snapshot cannot be read: %w", err)
	}
	return p.machine, nil
}
