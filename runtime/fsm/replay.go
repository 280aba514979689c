package fsm

import (
	"fmt"
	"io"
)

// replay is what the state can be made anew from: a checkpoint, and the commands
// since.
type replay struct {
	checkpoint []byte                        // a machine's snapshot; nil: the zero machine
	open       func() (io.ReadCloser, error) // opens a snapshot that is the checkpoint; nil: checkpoint is
	entries    []logged                      // what came after it
	commands   []byte                        // of the entries, one after another
	skipped    []uint64                      // positions of the commands among them that are not done again, ascending
	failed     []uint64                      // positions of the updates that returned an error and were not undone, ascending

	size                 int    // bytes of the checkpoint
	since                uint64 // index of the last entry that the checkpoint holds, or some of which it holds
	entriesMax, bytesMax int    // where the checkpoint should move on
}

// logged is an entry, or what of it is not in the checkpoint.
type logged struct {
	first      Entry // where its commands begin
	begin, end int   // in the commands of all
}

// redoneMax is how many commands may be gone through again for an update that fails,
// before the checkpoint moves on: many that fail would go through them again and
// again.
const redoneMax = 64

// add keeps a copy of the commands that begin at first.
func (p *replay) add(first Entry, commands []byte) {
	begin := len(p.commands)
	p.commands = append(p.commands, commands...)
	p.entries = append(p.entries, logged{first, begin, len(p.commands)})
}

// skip keeps the command at a position from being done again.
func (p *replay) skip(at uint64) { p.skipped = append(p.skipped, at) }

// fail says that the update at a position returns an error when it is done again, too.
func (p *replay) fail(at uint64) { p.failed = append(p.failed, at) }

func (p *replay) long() bool { return len(p.entries) >= p.entriesMax || len(p.commands) > p.bytesMax }

// limit says how much may come until the next checkpoint: by bytes twice the state,
// so that making checkpoints costs a fraction of what applying the entries does.
func (p *replay) limit(state, entriesMax int) {
	p.entriesMax, p.bytesMax = entriesMax, max(replayBytesMin, 2*state)
}

// moveOn goes on from a new checkpoint, which holds all that came. What then is left
// of the last entry is added again.
func (p *replay) advance(checkpoint []byte, since uint64, entriesMax int) {
	p.checkpoint, p.open, p.since, p.size = checkpoint, nil, since, len(checkpoint)
	p.entries, p.commands, p.skipped, p.failed = p.entries[:0], p.commands[:0], p.skipped[:0], p.failed[:0]
	p.limit(len(checkpoint), entriesMax)
}

// checkpoint moves the checkpoint on to where the machine stands, which is before
// what is left of the last entry. A state that cannot be encoded does not end
// everything: that is told to those who ask for a snapshot.
func (r *Replicated[S, U, R]) checkpoint(left logged) {
	size := len(r.replay.checkpoint)
	b, err := r.machine.AppendSnapshot(make([]byte, 0, size+size/8))
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

// restore replaces the machine by one without the command at a position, which has
// failed and is the last that was looked at.
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

// rebuilt makes the machine that there was before the command at a position, from
// the checkpoint and the commands since. It returns what is left of the last entry,
// and how many commands it went through.
func (r *Replicated[S, U, R]) rebuilt(to uint64) (m *Machine[S, U, R], left logged, n int, err error) {
	m = newMachine(r.definition, true)
	if r.replay.open != nil {
		if m, err = r.reopened(); err != nil {
			return nil, left, 0, err
		}
	} else if b := r.replay.checkpoint; b != nil {
		if err := m.Restore(b); err != nil {
			return nil, left, 0, fmt.Errorf("%w: own checkpoint: %w", ErrDiverged, err)
		}
	}
	left, n, err = r.replayTo(m, to)
	return m, left, n, err
}

// replayTo does the commands since the checkpoint again, up to a position, but for
// those that were undone, or had been done before.
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
		in := reader{b: r.replay.commands[entry.begin:entry.end]}
		for e := entry.first; ; e.Position++ {
			left = logged{e, entry.end - len(in.b), entry.end}
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

// diverged says that an update came to another end when it was done again; failed is
// its error then.
func diverged(e Entry, failed error) error {
	if failed == nil {
		return fmt.Errorf("%w: entry %d, command %d: it returned an error and returns none now", ErrDiverged, e.Index, e.Position)
	}
	return fmt.Errorf("%w: entry %d, command %d: %w", ErrDiverged, e.Index, e.Position, failed)
}
