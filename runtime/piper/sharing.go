package piper

const (
	donateNanosMin = 5_000 // with shorter turns the wake-up costs more than it saves
	donateLooksMax = 16    // instances of a long run queue that donate looks at
)

// sharing shares the work of busy workers: a worker with long turns hands over instances of its run queue to
// idle workers, and an idle worker asks for them.
type sharing struct {
	worker   *Worker
	longTurn bool // the last timed turn was long, and the worker is in Pool.long
	offers   bool // the worker is in Pool.offers
}

// donate hands over ready instances to idle workers, one to each, if their turns are long
// enough to pay for the wake-up. There must be a CPU for each of these workers.
func (s *sharing) donate() {
	w, p := s.worker, s.worker.pool
	for !p.pinned && p.busy() < int(p.threads.Load()) {
		before, u := s.candidate()
		if u == nil {
			return
		}
		to := p.idle.take()
		if to < 0 {
			return // other workers have taken all
		}
		w.runq.remove(before, u)
		u.queued = false
		w.handOver(u, p.workers[to])
		w.wokeAnother = true
	}
}

// candidate returns an instance of the run queue that donate hands over, and its predecessor there. If
// it had no turn yet, the last turn of another one is the estimate.
func (s *sharing) candidate() (before, u *Unit) {
	u = s.worker.runq.first
	for looks := 0; u != nil && looks < donateLooksMax; looks++ {
		if u.turnNanos >= donateNanosMin || u.turnNanos == 0 && s.longTurn {
			return before, u
		}
		before, u = u, u.next
	}
	return nil, nil
}

// setOffers records whether the worker has long turns and further instances in its run queue.
func (s *sharing) setOffers(offers bool) {
	s.offers = offers
	s.worker.pool.offers.set(s.worker, offers)
}

// ask makes a busy worker end its turn after the current call, so that it hands over an instance to the
// worker of s, which has become idle. Idle workers ask different workers.
func (s *sharing) ask() {
	p := s.worker.pool
	if p.busy() >= int(p.threads.Load()) {
		return
	}
	if i := p.offers.after(s.worker); i >= 0 {
		p.workers[i].yield.Or(yieldAsked)
	}
}

// setLong records whether the last timed turn was long.
func (s *sharing) setLong(long bool) {
	s.longTurn = long
	s.worker.pool.long.set(s.worker, long)
}
