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

// A snapshot of a state that is written in pieces has this form:
//
//	byte 0x81
//	frames: uvarint length, data
//	a frame of length 0
//
// The first frame is a snapshot as AppendSnapshot writes it, without the state. Each other
// one is a piece of the state.
const streamed = 0x81 // not a version of a snapshot

const frameMax = math.MaxInt32 // bytes; what protobuf's libraries have as their limit

// Freezer is a state that can be copied faster than it is encoded, or that shares with its
// copies what does not change. Its snapshots are encoded while updates go on.
type Freezer[S any] interface {
	// Freeze returns a state that equals the one it is called on, and that no later update
	// changes. It is called between two updates, which wait for it.
	Freeze() *S
}

// Snapshot returns what writes a snapshot: all that is to be known after the last entry.
// Where frozen is false, no entry may be applied while it is written.
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

// freeze is Freeze, with a panic made an error.
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

// writeSnapshot writes a snapshot. It reads nothing of r that changes.
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
			return fmt.Errorf("%w: an entry of the state with %d bytes, at most %d", ErrTooLarge, len(b), frameMax)
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

// Prepare reads all of a snapshot, and returns what makes everything as it says. The
// error of a snapshot that cannot be read matches [ErrDamaged], others are those of in.
// Until install is called nothing has changed: other methods may be called while Prepare
// runs. After install comes a call of [Replicated.Checkpoint].
func (r *Replicated[S, U, R]) Prepare(in io.Reader) (install func(), err error) {
	p, err := r.decode(in)
	if err != nil {
		return nil, err
	}
	return func() { p.install(r) }, nil
}

// decode reads a snapshot of either form.
func (r *Replicated[S, U, R]) decode(from io.Reader) (*prepared[S, U, R], error) {
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
		return r.prepare(b, r.definition.StateCodec.consume)
	}
	_, _ = in.Discard(1) // it is there
	f := frameReader{in: in}
	head, err := f.next()
	if err != nil {
		return nil, err
	}
	return r.prepare(bytes.Clone(head), func(rest []byte, s *S) error {
		if len(rest) > 0 {
			return fmt.Errorf("%d bytes in place of the pieces", len(rest))
		}
		for {
			b, err := f.next()
			if err != nil {
				return err
			}
			if len(b) == 0 {
				break
			}
			if err := r.definition.StateCodec.consume(b, s); err != nil {
				return err
			}
		}
		if _, err := in.ReadByte(); err != io.EOF {
			return errors.Join(errors.New("it goes on behind its end"), err)
		}
		return nil
	})
}

// frameReader reads frames. What next returns is valid until the next call.
type frameReader struct {
	in  *bufio.Reader
	buf bytes.Buffer
}

func (f *frameReader) next() ([]byte, error) {
	n, err := binary.ReadUvarint(f.in)
	if err == nil && n > frameMax {
		err = fmt.Errorf("a piece of %d bytes, at most %d", n, frameMax)
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
	return nil, fmt.Errorf("%w: the pieces of a state: %w", ErrDamaged, err)
}

// noCheckpoint is opened between install and Checkpoint.
func noCheckpoint() (io.ReadCloser, error) { return nil, errors.New("there is none") }

// Checkpoint says that a snapshot, which holds all entries up to an index, can be opened
// again and again: an update that panics is undone by means of it. It has size bytes.
// Until then copies of the entries since an earlier one are kept.
func (r *Replicated[S, U, R]) Checkpoint(index uint64, size int64, open func() (io.ReadCloser, error)) {
	if index < r.replay.since {
		return // a later one is there
	}
	r.replay.advanceTo(index, open)
	r.replay.size = int(size)
	if size < largeBytes {
		r.replay.limit(int(size), 2*r.options.ReplayMax) // the next snapshot comes before
	} else {
		r.replay.entriesMax, r.replay.bytesMax = math.MaxInt, replayBytesMax
	}
}

// moveTo goes on from a snapshot that holds all entries up to an index.
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

// reopened makes the machine of the checkpoint that is a snapshot.
func (r *Replicated[S, U, R]) reopened() (*Machine[S, U, R], error) {
	in, err := r.replay.open()
	if err != nil {
		return nil, fmt.Errorf("fsm: an update cannot be undone: the last snapshot cannot be read: %w", err)
	}
	p, err := r.decode(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("fsm: an update cannot be undone: the last snapshot cannot be read: %w", err)
	}
	return p.machine, nil
}
