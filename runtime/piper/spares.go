package piper

import "time"

// sparesPeriod is how long queues must be empty before their spare segments are dropped. A flow with
// shorter pauses allocates nothing.
const sparesPeriod = time.Second

// spareLink is a link whose queues were empty and had spare segments.
type spareLink struct {
	link  *Link
	taken uint64 // number of messages that its queues had passed to handlers
}

// keepSpares makes the worker of l's receiver look after some time whether the queues of l are still empty.
func (w *Worker) keepSpares(l *Link) {
	if w.stepped {
		return
	}
	l.sparesAt = int16(w.index + 1)
	if len(w.spares) == 0 {
		w.timers.push(timerEntry{at: w.pool.clock() + int64(sparesPeriod), kind: timerSpares})
		w.arm()
	}
	w.spares = append(w.spares, spareLink{l, l.taken()})
}

// dropSpares drops the spare segments of queues that were not used since the last look.
func (w *Worker) dropSpares(now int64) {
	kept := w.spares[:0]
	for _, s := range w.spares {
		l := s.link
		if l.to.worker.Load() != w {
			l.notify(w) // the other worker lists the link after its next turn
			continue
		}
		if taken := l.taken(); taken != s.taken || !l.empty() {
			kept = append(kept, spareLink{l, taken})
			continue
		}
		l.sparesAt = 0
		for _, h := range l.heads {
			if h.HasSpares() {
				h.DropSpares()
			}
		}
	}
	clear(w.spares[len(kept):])
	w.spares = kept
	if len(kept) == 0 {
		w.spares = nil
		return
	}
	w.timers.push(timerEntry{at: now + int64(sparesPeriod), kind: timerSpares})
}

// taken is the number of messages that the queues of l have passed to handlers.
func (l *Link) taken() (n uint64) {
	for _, h := range l.heads {
		n += h.Taken()
	}
	return n
}
