package piper

import (
	"fmt"
	"log/slog"
	"slices"
)

// Process is the operating system process of an isolated instance. process.Remote
// implements it.
type Process interface {
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Ended returns the error that says how the process ended, and whether the process exited on its
	// own, between two calls and with code 0.
	Ended() (clean bool, err error)
	// Ends reports whether the error of a call means that the process has ended or is
	// about to end.
	Ends(err error) bool
	// Refuses reports whether the error of a call means that the message could not be
	// passed to the process, and no handler was called.
	Refuses(err error) bool
	// Held requests the number of holds from the process and calls SetHolds if it has
	// changed. It must be called in a turn.
	Held() error
	// Kill ends the process. A call in progress returns an error, which wraps cause unless
	// it is nil. Any goroutine may call it.
	Kill(cause error)
}

// Started reports that a process was started, which Attach takes over later. A process
// that is not taken over is killed when another one is started, when the instance is not
// restarted, or when Run has ended.
func (u *Unit) Started(p Process) {
	w, pool := u.watch(), u.proc.pool
	pool.supervision.mu.Lock()
	defer pool.supervision.mu.Unlock()
	w.endSpare()
	w.spare = p
	if pool.supervision.closed {
		w.endSpare()
	}
}

// endSpare kills the process that was started and not taken over, if there is one. The
// caller holds the lock.
func (w *watch) endSpare() (spare Process) {
	spare, w.spare = w.spare, nil
	if spare != nil {
		spare.Kill(nil)
	}
	return spare
}

// Attach makes p the process of the instance. If the process ends, the instance ends,
// even between calls. If a call takes too long, the health check kills the process.
func (u *Unit) Attach(p Process) {
	w, pool := u.watch(), u.proc.pool
	w.process.Store(&p)
	if s := pool.stepper; s != nil {
		s.watchProcesses()
	}
	position := u.Enter()
	_ = p.Held() // Init in the process may hold; an error means that the process has ended, which is handled below
	position.Leave()
	pool.supervision.mu.Lock()
	if w.spare == p {
		w.spare = nil
	}
	pool.supervision.mu.Unlock()
	if s := pool.stepper; s != nil {
		s.processes = append(s.processes, attached{w, p})
		return
	}
	pool.running.Add(1)
	go func() {
		defer pool.running.Done()
		select {
		case <-p.Done():
			w.command(command{ended: p})
		case <-pool.done:
		}
	}()
}

// attached is a process under a Stepper and its instance.
type attached struct {
	watch   *watch
	process Process
}

// isCurrent reports whether the instance runs in the process.
func (a attached) isCurrent() bool {
	now := a.watch.process.Load()
	return a.watch.phase == watchRunning && now != nil && *now == a.process
}

// watchProcesses starts the health check when there is the first process, which can hang in real
// time.
func (s *Stepper) watchProcesses() {
	p := s.pool
	if list := p.supervision.timedWatches(); len(list) > 0 && !s.watching {
		s.watching = true
		p.running.Add(1)
		go p.supervision.watchHealth(list)
	}
}

// commandEnds reports the ends of the processes that have ended between calls. A Stepper has no
// goroutine that waits for them, because its turns would then depend on how long a process
// takes to end.
func (s *Stepper) commandEnds() {
	s.processes = slices.DeleteFunc(s.processes, func(a attached) bool {
		if !a.isCurrent() {
			return true // a call has reported the end
		}
		select {
		case <-a.process.Done():
			a.watch.command(command{ended: a.process})
			return true
		default:
			return false
		}
	})
}

// processEnded handles the end of a process. If the process ended during a call or
// during Serve, the error of that call ends the instance, so nothing is done here.
func (w *watch) processEnded(p Process) {
	if a := (attached{w, p}); !a.isCurrent() || w.unit.proc.Serve {
		return
	}
	if w.unit.proc.group.isFinished() {
		return // the instance has finished, so nothing was lost
	}
	if clean, err := p.Ended(); !clean || w.isNeeded() {
		w.reportEnd(w.failureKind(), w.unit.proc.pool.handlerError(w.unit, nil, "Process", err))
		return
	}
	u := w.unit
	u.proc.pool.logbook.line(slog.LevelInfo, "topogen: the process of an instance has ended", slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()))
	w.shutDown() // the instance cannot hold work or get another Ping
	w.reportEnd(ChildEnded, nil)
}

// isNeeded reports whether something is lost if the instance ends between two calls: a message, which
// is queued or may still arrive, the call of Finish, or held work.
func (w *watch) isNeeded() bool {
	return w.unit.proc.receives || w.unit.proc.Finish || w.holder.count() > 0
}

// endsProcess reports whether an error of a call means that the process has ended.
func (w *watch) endsProcess(err error) bool {
	p := w.process.Load()
	return p != nil && (*p).Ends(err)
}

// killProcess kills the process of the instance because of cause. It reports whether the
// instance has one.
func (w *watch) killProcess(cause error) (has bool) {
	p := w.process.Load()
	if p == nil {
		return false
	}
	w.killNow(*p, cause)
	return true
}

// killNow kills a process of the instance, once.
func (w *watch) killNow(p Process, cause error) {
	if w.killed.CompareAndSwap(false, true) {
		w.unit.proc.faults.healthCheckKills.Add(1)
		p.Kill(cause)
	}
}

// Isolated returns the error for a constructor that was set for an isolated processor.
func Isolated(processor string) error {
	return fmt.Errorf("%q is isolated, so its field of Processors must be nil: its process makes the instance "+
		"with the function that the topology file names under new, or as a zero value", processor)
}

// Logger is the logger of the pool.
func (u *Unit) Logger() *slog.Logger { return u.proc.pool.log() }

// Alive reports progress of a call of the instance.
func (u *Unit) Alive() {
	if l := u.Position(); l != nil {
		l.Alive()
	}
}
