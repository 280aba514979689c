package border

import "sync"

// perInstance counts the messages of a link to all instances of a processor, if some of them go
// to one instance only. The other node learns how many messages were handled, counted from
// the first one. So the perInstance finds the oldest message that some instance has not handled.
type perInstance struct {
	mu   sync.Mutex
	put  uint64 // number of messages
	ways []way  // by instance
}

// way are the messages of a link that go to one instance.
type way struct {
	handled uint64
	runs    []run // the messages that were not handled, oldest first
}

// run are messages with numbers that follow each other.
type run struct{ first, n uint64 }

// everyInstance is the instance of a message that goes to all of them.
const everyInstance = -1

// each calls do for the ways of a message.
func (t *perInstance) each(instance int, do func(w *way)) {
	for i := range t.ways {
		if instance == everyInstance || instance == i {
			do(&t.ways[i])
		}
	}
}

// add counts a message before its instances can handle it.
func (t *perInstance) add(instance int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(instance, func(w *way) {
		if last := len(w.runs) - 1; last >= 0 && w.runs[last].first+w.runs[last].n == t.put {
			w.runs[last].n++
		} else {
			w.runs = append(w.runs, run{t.put, 1})
		}
	})
	t.put++
}

// undo takes back the last add, because the message cannot be decoded.
func (t *perInstance) undo(instance int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put--
	t.each(instance, func(w *way) {
		last := len(w.runs) - 1
		if w.runs[last].n--; w.runs[last].n == 0 {
			w.runs = w.runs[:last]
		}
	})
}

// set records how many of its messages an instance has handled. It reports whether the
// number has changed.
func (t *perInstance) set(instance int, n uint64) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.ways[instance]
	more := n - w.handled
	w.handled = n
	for left := more; left > 0; {
		k := min(left, w.runs[0].n)
		left -= k
		w.runs[0].first += k
		if w.runs[0].n -= k; w.runs[0].n == 0 {
			w.runs = w.runs[1:]
		}
	}
	return more > 0
}

// handled is the number of messages before the first message that some instance has not
// handled.
func (t *perInstance) handled() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.put
	for i := range t.ways {
		if runs := t.ways[i].runs; len(runs) > 0 {
			n = min(n, runs[0].first)
		}
	}
	return n
}
