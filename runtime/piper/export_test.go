package piper

// Idle reports whether Run has begun and all workers sleep.
func Idle(p *Pool) bool { return int(p.idle.Load()) == len(p.workers) }

// Yields is how often the workers have let other goroutines run.
func Yields(p *Pool) (n uint64) {
	for _, w := range p.workers {
		n += w.yields
	}
	return n
}

// Ended reports whether Run has ended, or is about to.
func Ended(p *Pool) bool { return p.ended.Load() }

// Lenient has late sends counted and logged, as outside of tests, until it is called
// again.
func Lenient() (strict func()) {
	before := isTest
	isTest = func() bool { return false }
	return func() { isTest = before }
}

// Stopped reports whether the context of Run has ended.
func Stopped(p *Pool) bool { return p.stopping.Load() }

// EndedBy is what ended it, but for instances that have failed for good.
func EndedBy(p *Pool) error { return p.err }

// Making is how many instances of a processor were being made when it ended, or,
// under a Stepper, were in a call that hung.
func Making(p *Pool, processor int) (n int) {
	for _, w := range p.processors[processor].watches {
		if w.phase == watchStarting || w.hungCall != nil {
			n++
		}
	}
	return n
}

// PlaceBy lets a function decide, in place of what was measured, at which worker
// each instance is to be; -1 is one that cannot be placed.
func PlaceBy(p *Pool, decide func(workers int, at []int) []int) {
	p.place = func(m *placement) ([]int, bool) { return decide(m.workers, m.at), true }
}

// Pin puts the instances, in file order, on these workers, and lets nobody give
// any of them away.
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
