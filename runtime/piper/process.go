package piper

import (
	"fmt"
	"log/slog"
	"time"
)

// Process is what an instance runs in that is not a goroutine of this process.
// process.Remote is one.
type Process interface {
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Ended says how: nil for an end of its own accord and in order.
	Ended() error
	// Ends reports whether err, of a call, means that it has ended, or is about to.
	Ends(err error) bool
	// Refuses reports whether err, of a call, means that the message is at fault: it
	// could not be given to the process, and no handler was called.
	Refuses(err error) bool
	// Held asks what the instance holds, in a turn, which calls SetHolds where that
	// has changed.
	Held() error
	// Kill ends it, and makes the call under way return an error. Any goroutine may
	// call it.
	Kill()
}

// Started says that a process was started that Attach is to take. One that nobody
// takes is ended: another was started, the instance was given up, or Run has ended
// meanwhile.
func (u *Unit) Started(p Process) {
	w, pool := u.watch(), u.proc.pool
	pool.supervision.Lock()
	defer pool.supervision.Unlock()
	w.endSpare()
	w.spare = p
	if pool.closed {
		w.endSpare()
	}
}

// endSpare ends the process that was started and not taken, if there is one. The
// caller holds the lock.
func (w *watch) endSpare() (spare Process) {
	spare, w.spare = w.spare, nil
	if spare != nil {
		spare.Kill()
	}
	return spare
}

// endSpares ends the processes that nobody will take any more.
func (p *Pool) endSpares() {
	p.supervision.Lock()
	p.closed = true
	var spares []Process
	for _, proc := range p.processors {
		for _, w := range proc.watches {
			if spare := w.endSpare(); spare != nil {
				spares = append(spares, spare)
			}
		}
	}
	p.supervision.Unlock()
	late := time.After(abandonAfter)
	for _, spare := range spares {
		select {
		case <-spare.Done():
		case <-late:
			return // it waits in the kernel
		}
	}
}

// Attach says that the instance runs in a process. Its end is that of the
// instance, also between calls, and the health check ends it.
func (u *Unit) Attach(p Process) {
	w, pool := u.watch(), u.proc.pool
	w.process.Store(&p)
	life := u.Enter()
	_ = p.Held() // its Init may hold; an error is that of a process that has ended, which is noticed below
	life.Leave()
	pool.supervision.Lock()
	if w.spare == p {
		w.spare = nil
	}
	pool.supervision.Unlock()
	pool.running.Add(1)
	go func() {
		defer pool.running.Done()
		select {
		case <-p.Done():
			pool.supervision.Lock()
			w.orders = append(w.orders, order{ended: p})
			pool.supervision.Unlock()
			u.signal(controlOrder)
		case <-pool.done:
		}
	}()
}

// processEnded is told that a process has ended. Where it did so in a call, that
// has said so before; where it did so in Serve, that says it, or has.
func (w *watch) processEnded(p Process) {
	if now := w.process.Load(); w.phase != watchRunning || now == nil || *now != p || w.unit.proc.Serve {
		return
	}
	if w.unit.proc.group.isFinished() {
		return // it has nothing left to do, and nothing was lost
	}
	if err := p.Ended(); err != nil {
		w.reportEnd(w.failureKind(), w.unit.proc.pool.handlerError(w.unit, nil, "Process", err))
		return
	}
	u := w.unit
	u.proc.pool.logLine(slog.LevelInfo, "topogen: the process of an instance has ended", slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()))
	w.shutDown() // it can handle nothing more
	w.reportEnd(ChildEnded, nil)
}

// endsProcess reports whether an error of a call is that the process has ended.
func (w *watch) endsProcess(err error) bool {
	p := w.process.Load()
	return p != nil && (*p).Ends(err)
}

// killProcess ends the process of the instance, if it has one.
func (w *watch) killProcess() (has bool) {
	p := w.process.Load()
	if p == nil {
		return false
	}
	w.killNow(*p)
	return true
}

// killNow ends a process of the instance, once.
func (w *watch) killNow(p Process) {
	if w.killed.CompareAndSwap(false, true) {
		w.unit.proc.faults.healthCheckKills.Add(1)
		p.Kill()
	}
}

// Isolated is the error for a constructor that an isolated processor was given.
func Isolated(processor string) error {
	return fmt.Errorf("pool: processor %q is isolated: in its process it is made by what the topology file names under new, "+
		"or is the zero value; its field of Processors must be nil", processor)
}

// Logger is where the pool of the instance logs.
func (u *Unit) Logger() *slog.Logger { return u.proc.pool.log() }

// Alive says that a call of the instance makes progress.
func (u *Unit) Alive() {
	if l := u.Life(); l != nil {
		l.Alive()
	}
}
