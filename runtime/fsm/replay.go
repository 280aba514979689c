package fsm

import (
	"fmt"
	"io"
)

// replay holds what is needed to rebuild the state: a checkpoint, and the commands
// since.
type replay struct {
	checkpoint []byte                        // a snapshot of the Machine; nil: the zero Machine
	open       func() (io.ReadCloser, error) // opens the snapshot that is the checkpoint; nil: use checkpoint
	entries    []logged                      // the entries since the checkpoint
	commands   []byte                        // of all entries, concatenated
	skipped    []uint64                      // positions of the commands that are not executed again, ascending
	failed     []uint64                      // positions of the updates that returned an error and were not undone, ascending

	size                 int    // bytes of the checkpoint
	since                uint64 // index of the last entry that the checkpoint holds completely or in part
	entriesMax, bytesMax int    // limits after which a new checkpoint is made
}

// logged is an entry, or the part of an entry that is not in the checkpoint.
type logged struct {
	first      Entry // the position of its first command
	begin, end int   // range in replay.commands
}

// redoneMax is how many commands one failed update may execute again before a new
// checkpoint is made. Otherwise many failing updates would execute the same commands
// again and again.
const redoneMax = 64

// add stores a copy of the commands that begin at first.
func (p *replay) add(first Entry, commands []byte) {
	begin := len(p.commands)
	p.commands = append(p.commands, commands...)
	p.entries = append(p.entries, logged{first, begin, len(p.commands)})
}

// skip excludes the command at a position when the commands are executed again.
func (p *replay) skip(at uint64) { p.skipped = append(p.skipped, at) }

// fail records that the update at a position returned an error. If it is executed again,
// it must return an error again.
func (p *replay) fail(at uint64) { p.failed = append(p.failed, at) }

func (p *replay) long() bool { return len(p.entries) >= p.entriesMax || len(p.commands) > p.bytesMax }

// limit sets how much may follow a checkpoint. The limit in bytes is twice the state,
// so that making checkpoints costs a fraction of applying the entries.
func (p *replay) limit(state, entriesMax int) {
	p.entriesMax, p.bytesMax = entriesMax, max(replayBytesMin, 2*state)
}

// advance starts from a new checkpoint, which includes all commands so far. The caller
// adds the rest of the last entry again.
func (p *replay) advance(checkpoint []byte, since uint64, entriesMax int) {
	p.checkpoint, p.open, p.since, p.size = checkpoint, nil, since, len(checkpoint)
	p.entries, p.commands, p.skipped, p.failed = p.entries[:0], p.commands[:0], p.skipped[:0], p.failed[:0]
	p.limit(len(checkpoint), entriesMax)
}

// checkpoint makes a checkpoint of the current Machine, which is just before the rest
// of the last entry. If the state cannot be encoded and decoded, the replica goes on with
// larger limits, and the next snapshot reports the error.
func (r *Replicated[S, U, R]) checkpoint(left logged) {
	size := len(r.replay.checkpoint)
	b, err := r.machine.AppendSnapshot(make([]byte, 0, size+size/8))
	if err == nil {
		err = r.verifyMachine(b)
	}
	if err != nil {
		r.replay.entriesMax *= 2
		r.replay.bytesMax *= 2
		return
	}
	commands := r.replay.commands[left.begin:left.end]
	r.replay.advance(b, r.index, r.options.ReplayMax)
	if len(commands) > 0 {
		r.replay.add(left.first, commands) // moves them to the front
	}
}

// restore replaces the Machine by one without the command at a position, which has
// failed and is the last command executed.
func (r *Replicated[S, U, R]) restore(to uint64) error {
	m, left, n, err := r.rebuilt(to)
	if err != nil {
		return err
	}
	r.machine = m
	if n > redoneMax {
		r.checkpoint(left)
	}
	return nil
}

// rebuilt returns the Machine as it was before the command at a position, made from the
// checkpoint and the commands since. It returns the rest of the last entry, and the
// number of commands that it read.
func (r *Replicated[S, U, R]) rebuilt(to uint64) (m *Machine[S, U, R], left logged, n int, err error) {
	m = newMachine(r.definition, true)
	if r.replay.open != nil {
		if m, err = r.reopened(); err != nil {
			return nil, left, 0, err
		}
	} else if b := r.replay.checkpoint; b != nil {
		if err := m.Restore(b); err != nil {
			return nil, left, 0, fmt.Errorf("%w: the replica's own checkpoint cannot be read: %w", ErrDiverged, err)
		}
	}
	left, n, err = r.replayTo(m, to)
	return m, left, n, err
}

// replayTo executes the commands since the checkpoint again, up to a position. It skips
// commands that were undone or repeated.
func (r *Replicated[S, U, R]) replayTo(m *Machine[S, U, R], to uint64) (left logged, n int, err error) {
	skipped, fails := r.replay.skipped, r.replay.failed
	next := func(list *[]uint64, at uint64) bool {
		is := len(*list) > 0 && (*list)[0] == at
		if is {
			*list = (*list)[1:]
		}
		return is
	}
	var c command
	for _, entry := range r.replay.entries {
		in := newReader(r.replay.commands[entry.begin:entry.end])
		for e := entry.first; ; e.Position++ {
			left = logged{e, entry.end - len(in.B), entry.end}
			at := position(e.Index, e.Position)
			if at == to || !in.next(&c) {
				break
			}
			n++
			if next(&skipped, at) {
				continue
			}
			failed, err := r.executeOn(m, &c, e)
			if fails := next(&fails, at); err == nil && fails != (failed != nil) {
				err = diverged(e, failed)
			}
			if err != nil {
				return left, n, err
			}
		}
	}
	return left, n, nil
}

// diverged returns the error for an update that had another outcome when it was applied
// again. failed is its error now.
func diverged(e Entry, failed error) error {
	if failed == nil {
		return fmt.Errorf("%w: entry %d, command %d: the update returned an error the first time, and no error now", ErrDiverged, e.Index, e.Position)
	}
	return fmt.Errorf("%w: entry %d, command %d: %w", ErrDiverged, e.Index, e.Position, failed)
}
