package durable

// Stats are the figures of a worker since it was made.
type Stats struct {
	Activations uint64 // tasks that were acquired
	Steps       uint64 // attempts at steps that ran, not replayed ones
	Completed   uint64
	Failed      uint64 // executions whose promise was rejected
	Retried     uint64 // attempts that failed and are followed by another one
	Suspended   uint64
	Released    uint64
	Lost        uint64 // activations that lost their task: leases, cancellations, deadlines
	Diverged    uint64 // executions that were halted
	Unknown     uint64 // messages for functions that the worker does not have
	Malformed   uint64 // promises whose parameter is not a call; they are rejected
	Dropped     uint64 // messages beyond Config.Waiting; the tasks are announced again
	Running     int    // tasks that are held now
	Waiting     int    // tasks that wait for their turn now
}

func (w *Worker) count(f func(*Stats)) {
	w.mu.Lock()
	f(&w.stats)
	w.mu.Unlock()
}

// Stats returns the figures of the worker.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Running, s.Waiting = len(w.held), w.queue.waiting
	return s
}

// observe counts and logs the outcome of an activation.
func (w *Worker) observe(e *execution) {
	switch o := e.outcome; o.State {
	case Completed:
		w.count(func(s *Stats) { s.Completed++ })
	case Failed:
		w.count(func(s *Stats) { s.Failed++ })
		w.log.Warn("durable: an execution failed", "id", e.task.ID, "function", e.function.Name, "attempt", o.Attempt, "error", o.Err)
	case Suspended:
		w.count(func(s *Stats) { s.Suspended++ })
	case Retrying:
		w.count(func(s *Stats) { s.Retried++ })
		w.log.Info("durable: an attempt failed", "id", e.task.ID, "function", e.function.Name, "attempt", o.Attempt, "error", o.Err)
	case Released:
		w.count(func(s *Stats) { s.Released++ })
	case Lost:
		w.count(func(s *Stats) { s.Lost++ })
		w.log.Info("durable: a task was lost", "id", e.task.ID, "function", e.function.Name, "cause", o.Err)
	case Halted:
		w.count(func(s *Stats) { s.Diverged++ })
		w.log.Error("durable: an execution was halted; install a program that takes the recorded path, and run topoctl durable tasks continue with its id", "id", e.task.ID, "function", e.function.Name, "error", o.Err)
		w.wake(e.task.ID)
	}
}
