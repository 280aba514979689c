// Package sleepers has a hundred instances that work, and a hundred whose handlers sleep.
package sleepers

import (
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/bench/work"
)

//go:generate go tool topogen build

// NapTime is the time of a sleeper's handler.
const NapTime = 50 * time.Millisecond

// Job keeps a worker busy and Nap a sleeper, until stop is set.
type (
	Job struct{}
	Nap struct{}
)

// Worker does some work for each job and sends itself the next.
type Worker struct {
	steps int
	stop  *atomic.Bool
	done  atomic.Int64
}

func (w *Worker) ReceiveJob(m Job, out *WorkerSender) {
	if w.stop.Load() {
		return
	}
	work.Do(w.steps)
	w.done.Store(w.done.Load() + 1)
	out.SendJob(m)
}

// Sleeper sleeps for each nap and sends itself the next.
type Sleeper struct{ stop *atomic.Bool }

func (s *Sleeper) ReceiveNap(m Nap, out *SleeperSender) {
	if s.stop.Load() {
		return
	}
	time.Sleep(NapTime)
	out.SendNap(m)
}
