package piper

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
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
	w.process.endSpare()
	w.process.spare = p
	if pool.supervision.closed {
		w.process.endSpare()
	}
}

// endSpare kills the process that was started and not taken over, if there is one. The
// caller holds the lock.
func (o *ownProcess) endSpare() (spare Process) {
	spare, o.spare = o.spare, nil
	if spare != nil {
		spare.Kill(nil)
	}
	return spare
}

// Attach makes p the process of the instance. If the process ends, the instance ends,
// even between calls. If a call takes too long, the health check kills the process.
func (u *Unit) Attach(p Process) {
	w, pool := u.watch(), u.proc.pool
	w.process.current.Store(&p)
	if s := pool.stepper; s != nil {
		s.watchProcesses()
	}
	position := u.Enter()
	_ = p.Held() // Init in the process may hold; an error means that the process has ended, which is handled below
	position.Leave()
	pool.supervision.mu.Lock()
	if w.process.spare == p {
		w.process.spare = nil
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
	return a.watch.phase == watchRunning && a.watch.process.get() == a.process
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

// ownProcess is the process of an instance, if it is isolated.
type ownProcess struct {
	faults  *faults                 // of the processor
	current atomic.Pointer[Process] // nil if the instance runs in this process
	killed  atomic.Bool             // by the health check
	spare   Process                 // was started and is not attached yet; guarded by Pool.supervision
}

// get returns the process, or nil if there is none.
func (o *ownProcess) get() Process {
	if p := o.current.Load(); p != nil {
		return *p
	}
	return nil
}

// ends reports whether an error of a call means that the process has ended.
func (o *ownProcess) ends(err error) bool {
	p := o.get()
	return p != nil && p.Ends(err)
}

// refuses reports whether an error of a call means that the current message could not
// be passed to the process. Then neither a failure of the instance nor
// an attempt at the message is counted.
func (o *ownProcess) refuses(err error) bool {
	p := o.get()
	return p != nil && p.Refuses(err)
}

// kill kills the process, once, because of cause. It reports whether there is one.
func (o *ownProcess) kill(cause error) (has bool) {
	p := o.get()
	if p != nil {
		o.killNow(p, cause)
	}
	return p != nil
}

// killNow is kill for a process that get has returned.
func (o *ownProcess) killNow(p Process, cause error) {
	if o.killed.CompareAndSwap(false, true) {
		o.faults.healthCheckKills.Add(1)
		p.Kill(cause)
	}
}

// failureKind is ChildHung if the process was killed, and ChildFailed otherwise.
func (o *ownProcess) failureKind() ChildEventKind {
	if o.killed.Load() {
		return ChildHung
	}
	return ChildFailed
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
