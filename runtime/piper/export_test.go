package piper

import (
	"time"
	"unsafe"

	"github.com/topogen/topogen/runtime/piper/placement"
)

// Idle reports whether Run has started and all workers are parked.
func Idle(p *Pool) bool { return p.busy() == 0 }

// Yields is how often the workers have yielded.
func Yields(p *Pool) (n uint64) {
	for _, w := range p.workers {
		n += w.yields
	}
	return n
}

// Slept lets d pass on the clock on the wall, and not on the monotonic clock, as when the
// computer sleeps. d is in whole seconds.
func Slept(p *Pool, d time.Duration) {
	wall := (*uint64)(unsafe.Pointer(&p.began)) // the first field of a time.Time; bits 30 to 62 are seconds
	*wall -= uint64(d/time.Second) << 30
}

// Ended reports whether Run has ended or is about to return.
func Ended(p *Pool) bool { return p.ended.Load() }

// Lenient makes late sends counted and logged only, as outside of tests, until strict
// is called.
func Lenient() (strict func()) {
	before := isTest
	isTest = func() bool { return false }
	return func() { isTest = before }
}

// KeepsSegments reports whether a queue to u keeps segments. It must be called on the goroutine of
// u's worker.
func KeepsSegments(u *Unit) bool {
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		for _, h := range l.heads {
			if h.Attached() {
				return true
			}
		}
	}
	return false
}

// InLinks is the number of links to u.
func InLinks(u *Unit) (n int) {
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		n++
	}
	return n
}

// ReleaseAfter sets how long links must be idle before they are released.
func ReleaseAfter(p *Pool, d time.Duration) { p.idleLinkPeriod = d }

// Stopped reports whether the context of Run has ended.
func Stopped(p *Pool) bool { return p.stopping.Load() }

// EndedBy is the error that ended Run, without the errors of instances that were not
// restarted.
func EndedBy(p *Pool) error { return p.lifecycle.err }

// Making is how many instances of a processor were being started when Run ended or,
// under a Stepper, were in a call that hung.
func Making(p *Pool, processor int) (n int) {
	for _, w := range p.processors[processor].watches {
		if w.phase == watchStarting || w.hungCall != nil {
			n++
		}
	}
	return n
}

// AskToYield makes the worker of u end its turn, as the monitor and idle workers do.
func AskToYield(u *Unit) { u.worker.Load().yield.Or(yieldAsked) }

// PlaceBy replaces the placement with a function that decides the worker of each
// instance. -1 is an instance that cannot be placed.
func PlaceBy(p *Pool, decide func(workers int, at []int) []int) {
	p.place = func(m *placement.Measured) ([]int, bool) { return decide(m.Workers, m.At), true }
}

// Pin assigns the instances, in file order, to the given workers, and prevents all
// moves.
func Pin(p *Pool, at []int) {
	p.pinned = true
	i := 0
	for _, proc := range p.processors {
		for _, u := range proc.units {
			u.worker.Store(p.workers[at[i]])
			i++
		}
	}
}

// Outside is the number of instances that are outside the pool because of long calls, and the largest number
// that may be if calls take the given time. The monitor takes a worker at most every two periods. Its instance
// comes back when it was idle for some time.
func Outside(p *Pool, took time.Duration) (now, most int) {
	taken := len(p.workers) * int((took+soloIdleMax)/(2*monitorPeriod)+1)
	return len(p.monitor.hungSolos()), solosMax + taken
}

// IdleLinksMax is how many idle links a worker lists at most.
const IdleLinksMax = idleLinksMax

// CloseGate and OpenGate are those of the Interior.
func CloseGate(p *Pool)                 { Interior{p}.CloseGate() }
func OpenGate(p *Pool, until time.Time) { Interior{p}.OpenGate(until) }

// Waits is the number of workers that wait for the gate.
func Waits(p *Pool) int {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	return p.calls.asleep
}

// AtGate reports whether each worker is parked, or waits for the gate.
func AtGate(p *Pool) bool {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	working := 0
	for _, w := range append(p.solos[:len(p.solos):len(p.solos)], p.workers...) {
		if !w.parked.Load() {
			working++
		}
	}
	return working == p.calls.asleep
}
