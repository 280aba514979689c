package piper

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// Isolation is the pool's part of an instance that runs in a process of its own. Each watch has
// one. It is empty if the instance runs in this process. Except for the atomics and spare, it
// belongs to the worker of the instance.
type Isolation struct {
	watch       *watch
	process     atomic.Pointer[Process] // of the instance, or nil
	killed      atomic.Bool             // by the health check, or because a stop took too long
	heldCheckAt int64                   // when to request the holds of the instance; 0 means never
	spare       Process                 // a process that was started and is not attached yet; guarded by Pool.supervision
}

// heldEvery is the interval at which the pool requests the number of holds from a
// process that holds work, because a goroutine there may release a hold between calls.
const heldEvery = 100 * time.Millisecond

// current is the process of the instance, or nil if it has none. i is nil if the processor has no
// Watch.
func (i *Isolation) current() Process {
	if i == nil {
		return nil
	}
	if p := i.process.Load(); p != nil {
		return *p
	}
	return nil
}

// Started reports that a process was started, which Attach takes over later. A process
// that is not taken over is killed when another one is started, when the instance is not
// restarted, or when Run has ended.
func (i *Isolation) Started(p Process) {
	s := &i.watch.unit.proc.pool.supervision
	s.mu.Lock()
	defer s.mu.Unlock()
	i.endSpare()
	i.spare = p
	if s.closed {
		i.endSpare()
	}
}

// endSpare kills the process that was started and not taken over, if there is one. The
// caller holds the lock.
func (i *Isolation) endSpare() (spare Process) {
	spare, i.spare = i.spare, nil
	if spare != nil {
		spare.Kill(nil)
	}
	return spare
}

// Attach makes p the process of the instance. If the process ends, the instance ends,
// even between calls. If a call takes too long, the health check kills the process.
func (i *Isolation) Attach(p Process) {
	u := i.watch.unit
	pool := u.proc.pool
	i.process.Store(&p)
	if s := pool.stepper; s != nil {
		s.watchProcesses()
	}
	position := u.Enter()
	_ = p.Held() // Init in the process may hold; an error means that the process has ended, which is handled below
	position.Leave()
	pool.supervision.mu.Lock()
	if i.spare == p {
		i.spare = nil
	}
	pool.supervision.mu.Unlock()
	if s := pool.stepper; s != nil {
		s.processes = append(s.processes, attached{i, p})
		return
	}
	pool.running.Add(1)
	go func() {
		defer pool.running.Done()
		select {
		case <-p.Done():
			i.watch.command(command{ended: p})
		case <-pool.done:
		}
	}()
}

// ended handles the end of a process. If the process ended during a call or during Serve,
// the error of that call ends the instance, so nothing is done here.
func (i *Isolation) ended(p Process) {
	w, u := i.watch, i.watch.unit
	if a := (attached{i, p}); !a.isCurrent() || u.proc.Serve {
		return
	}
	if u.proc.group.isFinished() {
		return // the instance has finished, so nothing was lost
	}
	if clean, err := p.Ended(); !clean || w.isNeeded() {
		w.reportEnd(i.failureKind(), u.proc.pool.handlerError(u, nil, "Process", err))
		return
	}
	u.proc.pool.logbook.line(slog.LevelInfo, "topogen: the process of an instance has ended", slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()))
	w.shutDown() // the instance cannot hold work or get another Ping
	w.reportEnd(ChildEnded, nil)
}

// ends reports whether an error of a call means that the process has ended.
func (i *Isolation) ends(err error) bool {
	p := i.current()
	return p != nil && p.Ends(err)
}

// refuses reports whether an error of a call means that the current message could not
// be passed to the process of the instance. Then neither a failure of the instance nor
// an attempt at the message is counted.
func (i *Isolation) refuses(err error) bool {
	p := i.current()
	return p != nil && p.Refuses(err)
}

// kill kills a process of the instance because of cause, once.
func (i *Isolation) kill(p Process, cause error) {
	if i.killed.CompareAndSwap(false, true) {
		i.CountKill()
		p.Kill(cause)
	}
}

// failureKind is ChildHung if the process was killed, and ChildFailed otherwise.
func (i *Isolation) failureKind() ChildEventKind {
	if i.killed.Load() {
		return ChildHung
	}
	return ChildFailed
}

// CountKill counts a process of the instance that was killed, for example because its start
// took too long.
func (i *Isolation) CountKill() { i.watch.unit.proc.faults.healthCheckKills.Add(1) }

// CloseTimeout is how long Close of the instance may take.
func (i *Isolation) CloseTimeout() time.Duration {
	u := i.watch.unit
	return u.proc.pool.lifecycle.closeTimeout(u)
}

// MessageLimit is the largest size of an encoded message in bytes, a setting of the pool.
func (i *Isolation) MessageLimit() int { return i.watch.unit.proc.pool.MessageLimit() }

// Logger is the logger of the pool.
func (i *Isolation) Logger() *slog.Logger { return i.watch.unit.proc.pool.log() }

// LogStart logs that the instance runs in a process.
func (i *Isolation) LogStart(pid int) {
	u := i.watch.unit
	u.proc.pool.logbook.limitedLine(u, logProcess, line{slog.LevelInfo, "topogen: an instance runs in a process",
		[]slog.Attr{slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.Int("pid", pid)}})
}

// Alive reports progress of a call of the instance.
func (i *Isolation) Alive() {
	if l := i.watch.position; l != nil {
		l.Alive()
	}
}

// SetHolds sets the number of holds of the instance. It must be called in a turn of the
// instance.
func (i *Isolation) SetHolds(n int) {
	i.watch.holder.set(n)
	i.scheduleHeld()
}

// scheduleHeld sets the time of the next callHeld if the instance holds work.
func (i *Isolation) scheduleHeld() {
	w := i.watch
	if w.holder.count() > 0 && i.heldCheckAt == 0 && w.phase == watchRunning {
		i.heldCheckAt = w.unit.proc.pool.clock() + int64(heldEvery)
		w.unit.proc.wakeAt(w.unit, i.heldCheckAt)
	}
}

// callHeld requests the number of holds from the process of an isolated instance.
func (r *runner) callHeld(u *Unit) {
	u.pendingCalls &^= callHeld
	p := u.Isolation().current()
	if p == nil {
		return
	}
	r.call(u, "Held", func() error {
		position := u.Enter() // a process that hangs is killed, as in other calls
		err := p.Held()
		position.Leave()
		return err
	})
	u.Isolation().scheduleHeld()
}
