package fsm

import (
	"fmt"
	"slices"
)

// replay is what the state can be made anew from: a checkpoint, and the entries
// since.
type replay struct {
	checkpoint []byte   // a machine's snapshot; nil: the zero machine
	from       uint64   // position of the first command that is not in it
	entries    []logged // that hold commands from there on
	skipped    []uint64 // positions of those that changed nothing, ascending
	bytes      int      // in entries

	entriesMax, bytesMax int // where the checkpoint should move on
}

type logged struct {
	index    uint64
	now      int64
	commands []byte
}

// redoneMax is how many commands may be done again for an update that fails, before
// the checkpoint moves on: many that fail would do them again and again.
const redoneMax = 64

func (p *replay) add(e logged) {
	p.entries = append(p.entries, e)
	p.bytes += len(e.commands)
}

func (p *replay) skip(at uint64) { p.skipped = append(p.skipped, at) }

func (p *replay) long() bool { return len(p.entries) >= p.entriesMax || p.bytes > p.bytesMax }

// limit says how much may come until the next checkpoint: by bytes twice the state,
// so that making checkpoints costs a fraction of what applying the entries does.
func (p *replay) limit(state, entriesMax int) {
	p.entriesMax, p.bytesMax = entriesMax, max(replayBytesMin, 2*state)
}

// moveOn forgets what lies before from, which a new checkpoint holds.
func (p *replay) moveOn(checkpoint []byte, from uint64, entriesMax int) {
	p.checkpoint, p.from = checkpoint, from
	p.entries = slices.DeleteFunc(p.entries, func(e logged) bool { return e.index < from>>positionBits })
	p.bytes = 0
	for _, e := range p.entries {
		p.bytes += len(e.commands)
	}
	n, _ := slices.BinarySearch(p.skipped, from)
	p.skipped = slices.Delete(p.skipped, 0, n)
	p.limit(len(checkpoint), entriesMax)
}

// checkpoint moves the checkpoint on to where the machine stands: before the
// command at from. A state that cannot be encoded does not end everything: that is
// told to those who ask for a snapshot.
func (r *Replicated[S, U, P]) checkpoint(from uint64) {
	size := len(r.replay.checkpoint)
	b, err := r.machine.AppendSnapshot(make([]byte, 0, size+size/8), r.stateCodec, r.updateCodec)
	if err != nil {
		r.replay.entriesMax *= 2
		r.replay.bytesMax *= 2
		return
	}
	r.replay.moveOn(b, from, r.options.ReplayMax)
}

// restore makes the machine anew, as it was before the command at a position.
func (r *Replicated[S, U, P]) restore(to uint64) error {
	m := &Machine[S, U, P]{logged: true}
	if b := r.replay.checkpoint; b != nil {
		if err := m.Restore(b, r.stateCodec, r.updateCodec); err != nil {
			return fmt.Errorf("%w: own checkpoint: %w", ErrDiverged, err)
		}
	}
	n, err := r.replayTo(m, to)
	if err != nil {
		return err
	}
	r.machine = m
	if n > redoneMax {
		r.checkpoint(to)
	}
	return nil
}

// replayTo does the commands since the checkpoint again that changed something, up
// to a position.
func (r *Replicated[S, U, P]) replayTo(m *Machine[S, U, P], to uint64) (n int, err error) {
	skipped := r.replay.skipped
	var c command
	for _, logged := range r.replay.entries {
		in := reader{b: logged.commands}
		e := Entry{Index: logged.index, Time: logged.now}
		for ; in.next(&c); e.Position++ {
			at := position(e.Index, e.Position)
			if at >= to {
				return n, nil
			}
			if len(skipped) > 0 && skipped[0] == at {
				skipped = skipped[1:]
				continue
			}
			if at < r.replay.from {
				continue
			}
			failed, err := r.redo(m, &c, e)
			if err == nil && failed != nil {
				err = fmt.Errorf("%w: entry %d, command %d: %w", ErrDiverged, e.Index, e.Position, failed)
			}
			if err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
