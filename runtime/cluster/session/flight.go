package session

// flight is a data frame that was sent and is not acknowledged.
type flight struct {
	frame    []byte // as it was sent first
	start    int    // of the items in it
	stamp    uint64 // of its last transmission
	messages uint32 // that end in this frame
	received bool   // the peer has the frame, and waits for an earlier one
	lost     bool   // it must be sent again
	resent   bool   // its stamp is not in the order of the numbers
}

func (f *flight) body() []byte { return f.frame[f.start:] }

// flights is the window: a ring of the frames first to next-1. Its length is a power of
// two or 0.
type flights struct {
	ring        []flight
	first, next uint64 // numbers of frames; the first frame of a session has number 1
	bytes       int    // of the bodies
	messages    uint64
	lost        int    // number of lost frames
	lostFrom    uint64 // no frame before it is lost
	stamp       uint64 // the highest stamp that was sent
	echo        uint64 // the highest stamp that has reached the peer
}

func newFlights() flights { return flights{first: 1, next: 1} }

func (w *flights) len() int            { return int(w.next - w.first) }
func (w *flights) at(n uint64) *flight { return &w.ring[n&uint64(len(w.ring)-1)] }

// add adds a frame and returns its number.
func (w *flights) add(f flight) uint64 {
	if w.len() == len(w.ring) {
		ring := make([]flight, max(16, 2*len(w.ring)))
		for n := w.first; n < w.next; n++ {
			ring[n&uint64(len(ring)-1)] = *w.at(n)
		}
		w.ring = ring
	}
	n := w.next
	w.next++
	*w.at(n) = f
	w.bytes += len(f.body())
	w.messages += uint64(f.messages)
	return n
}

// nextStamp returns the stamp of a transmission at a time. Stamps increase, so that they
// order transmissions.
func (w *flights) nextStamp(now uint64) uint64 {
	w.stamp = max(now, w.stamp+1)
	return w.stamp
}

// check reports what is wrong with an acknowledgement.
func (w *flights) check(a *ack) error {
	switch {
	case a.last >= w.next:
		return malformed("frame %d is acknowledged, but only %d were sent", a.last, w.next-1)
	case a.echo > w.stamp:
		return malformed("stamp %d is acknowledged, but the last one is %d", a.echo, w.stamp)
	}
	return nil
}

// acknowledge applies an acknowledgement. It returns the number of messages that are
// complete at the peer since, and whether the acknowledgement says anything new. Frames
// that were sent once are put into spare, if it is not nil. Others may still be in the
// queue of the transport.
func (w *flights) acknowledge(a *ack, spare *Buffers) (messages uint64, progress bool) {
	for w.first <= a.last {
		f := w.at(w.first)
		if f.lost {
			w.lost--
		}
		messages += uint64(f.messages)
		w.bytes -= len(f.body())
		if spare != nil && !f.resent {
			spare.give(f.frame)
		}
		*f = flight{}
		w.first++
		progress = true
	}
	w.messages -= messages
	for i, bits := range a.bitmap {
		for j := range uint64(8) {
			n := a.last + 2 + uint64(i)*8 + j
			if bits>>j&1 == 0 || n < w.first || n >= w.next {
				continue
			}
			if f := w.at(n); !f.received {
				f.received, progress = true, true
				if f.lost {
					f.lost = false
					w.lost--
				}
			}
		}
	}
	if a.echo > w.echo {
		w.echo = a.echo
	}
	return messages, progress
}

// findLost marks frames as lost if the peer has a later transmission. A transport keeps
// the order of frames, so such a frame cannot arrive any more. On a network that reorders
// frames, some are sent again in vain.
func (w *flights) findLost() {
	for n := w.first; n < w.next; n++ {
		f := w.at(n)
		if f.stamp >= w.echo {
			if !f.resent {
				return // all later frames that were sent once have later stamps, and all others were sent again after them
			}
			continue
		}
		if !f.received {
			w.lose(n)
		}
	}
}

// expire marks the first frame as lost after a timeout. The answer to it says which others
// are missing.
func (w *flights) expire() { w.lose(w.first) }

func (w *flights) lose(n uint64) {
	f := w.at(n)
	if f.lost {
		return
	}
	f.lost = true
	w.lost++
	if w.lost == 1 {
		w.lostFrom = n
	}
	w.lostFrom = min(w.lostFrom, n)
}

// takeLost returns the first lost frame and marks it as sent.
func (w *flights) takeLost() (number uint64, f *flight) {
	n := max(w.lostFrom, w.first)
	for !w.at(n).lost {
		n++
	}
	f = w.at(n)
	f.lost, f.resent = false, true
	w.lost--
	w.lostFrom = n + 1
	return n, f
}
