package piper

import "time"

// sparesPeriod is how long queues must be empty before their spare segments are dropped. A flow with
// shorter pauses allocates nothing.
const sparesPeriod = time.Second

// spareLink is a link whose queues were empty and had spare segments.
type spareLink struct {
	link  *Link
	stay  uint16 // of the receiver, see Unit.stay
	taken uint64 // number of messages that its queues had passed to handlers
}

// stay numbers the times between two changes of u's worker. It is not 0.
func (u *Unit) stay() uint16 { return uint16(u.moves.Load()&0x7fff) + 1 }

// keepSpares makes the worker of l's receiver look after some time whether the queues of l are still empty.
func (w *Worker) keepSpares(l *Link) {
	if w.stepped {
		return
	}
	l.sparesAt = l.to.stay()
	if len(w.spares) == 0 {
		w.timers.push(timerEntry{at: w.pool.clock() + int64(sparesPeriod), kind: timerSpares})
		w.arm()
	}
	w.spares = append(w.spares, spareLink{l, l.sparesAt, l.taken()})
}

// lookAtSpares drops the spare segments of queues that were not used since the last look.
func (w *Worker) lookAtSpares(now int64) {
	kept := w.spares[:0]
	for _, s := range w.spares {
		l := s.link
		if l.to.worker.Load() != w {
			l.notify(w) // the other worker lists the link after its next turn
			continue
		}
		stay, taken := l.to.stay(), l.taken()
		switch {
		case l.sparesAt == stay && s.stay != stay: // the receiver came back, and the link was listed again
		case l.sparesAt == stay && s.taken == taken && l.empty():
			l.dropSpares()
		default:
			l.sparesAt = stay
			kept = append(kept, spareLink{l, stay, taken})
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

// dropSpares drops the spare segments of the queues of l. Only the receiver calls it.
func (l *Link) dropSpares() {
	l.sparesAt = 0
	for _, h := range l.heads {
		if h.HasSpares() {
			h.DropSpares()
		}
	}
}

// taken is the number of messages that the queues of l have passed to handlers.
func (l *Link) taken() (n uint64) {
	for _, h := range l.heads {
		n += h.Taken()
	}
	return n
}
