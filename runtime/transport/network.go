package transport

import "math/rand/v2"

// Faults defines what a [Network] does to messages.
type Faults struct {
	Loss      float64 // the fraction of messages that are lost, 0 to 1
	Duplicate float64 // the fraction that arrives twice, each copy with its own delay, 0 to 1
	DelayMin  int64   // the delay of a message, in the unit of now;
	DelayMax  int64   // if the two differ, messages overtake each other

	// Ordered keeps messages in the order that a [Transport] promises, as if all
	// messages on a link had the same group. The second copy of a message may still
	// come at any time. Without Ordered, messages of every class overtake each other.
	Ordered bool
}

// Network is a network for simulations. It keeps messages of type M, between nodes with
// small numbers, until their delivery time. It has no goroutine and no clock, and must
// be used by one goroutine. The same seed and the same calls have the same effect.
//
//	n := transport.NewNetwork[*raftpb.Message](rand.New(rand.NewPCG(seed, 0)), transport.Faults{Loss: 0.1, DelayMax: 20})
//	n.Send(now, 1, 2, m)
//	for {
//		if now, ok = n.Next(); !ok { break }
//		if from, to, m, ok := n.Deliver(now); ok { … }
//	}
//
// A message that arrives twice is the same M twice. If M holds pointers, the receiver
// must not change what they point to.
type Network[M any] struct {
	rng         *rand.Rand
	faults      Faults
	flights     flights[M]
	sequence    uint64             // of messages: keeps the order of messages with equal times
	lastArrival map[classKey]int64 // the latest delivery time of a class
	cut         map[link]bool
	isolated    map[int]bool
	counts      NetworkStats
}

// NetworkStats counts messages. Sent + Duplicated is Delivered + Lost + the messages in
// transit.
type NetworkStats struct {
	Sent, Duplicated, Delivered, Lost uint64
}

type link struct{ from, to int }

// classKey is a link and a class: its messages keep their order.
type classKey struct {
	link
	class Class
}

// NewNetwork returns a network without cuts. All random decisions use rng.
func NewNetwork[M any](rng *rand.Rand, f Faults) *Network[M] {
	n := &Network[M]{rng: rng, lastArrival: make(map[classKey]int64), cut: make(map[link]bool), isolated: make(map[int]bool)}
	n.SetFaults(f)
	return n
}

// SetFaults changes the faults of messages that are sent from now on.
func (n *Network[M]) SetFaults(f Faults) {
	f.DelayMin = max(f.DelayMin, 0)
	f.DelayMax = max(f.DelayMax, f.DelayMin)
	n.faults = f
}

// Send sends an Ordered message at a time. It is lost if the link is cut, and at
// random.
func (n *Network[M]) Send(now int64, from, to int, m M) { n.SendAs(now, from, to, Ordered, m) }

// SendAs is Send for a message of any class. All classes have the same faults.
func (n *Network[M]) SendAs(now int64, from, to int, class Class, m M) {
	n.counts.Sent++
	// Always draw the same numbers, even if the message is lost. So a cut in one run
	// does not change the random decisions for all other messages.
	lost := n.rng.Float64() < n.faults.Loss
	twice := n.rng.Float64() < n.faults.Duplicate
	first, second := n.delay(), n.delay()
	if lost || n.isCut(from, to) {
		n.counts.Lost++
		return
	}
	n.schedule(n.arrival(now+first, link{from, to}, class), from, to, m)
	if twice {
		n.counts.Duplicated++
		n.schedule(now+second, from, to, m)
	}
}

// arrival returns the delivery time of a message that would arrive at a time without
// other messages: not before earlier messages of its class. Bulk messages also wait for
// Ordered ones. Urgent messages overtake the others only at random.
func (n *Network[M]) arrival(at int64, l link, class Class) int64 {
	if class >= Classes {
		class = Ordered
	}
	if !n.faults.Ordered {
		return at
	}
	if class == Bulk {
		at = max(at, n.lastArrival[classKey{l, Ordered}])
	}
	key := classKey{l, class}
	at = max(at, n.lastArrival[key])
	n.lastArrival[key] = at
	return at
}

func (n *Network[M]) delay() int64 {
	return n.faults.DelayMin + n.rng.Int64N(n.faults.DelayMax-n.faults.DelayMin+1)
}

func (n *Network[M]) schedule(at int64, from, to int, m M) {
	n.sequence++
	n.flights.push(flight[M]{at: at, sequence: n.sequence, link: link{from, to}, message: m})
}

// Next returns the time of the next delivery. The message may still be lost at that
// time, see [Network.Cut].
func (n *Network[M]) Next() (at int64, ok bool) {
	if len(n.flights) == 0 {
		return 0, false
	}
	return n.flights[0].at, true
}

// Deliver removes and returns the first message with a delivery time of now or before.
// ok is false if there is no such message.
func (n *Network[M]) Deliver(now int64) (from, to int, m M, ok bool) {
	for len(n.flights) > 0 && n.flights[0].at <= now {
		f := n.flights.pop()
		if n.isCut(f.from, f.to) {
			n.counts.Lost++
			continue
		}
		n.counts.Delivered++
		return f.from, f.to, f.message, true
	}
	return 0, 0, m, false
}

// Len returns the number of messages in transit.
func (n *Network[M]) Len() int { return len(n.flights) }

// Cut cuts or restores the link from one node to another, in this direction only. A
// message is lost if its link is cut when it is sent or when it arrives. Messages in
// transit survive a short cut.
func (n *Network[M]) Cut(from, to int, cut bool) {
	if cut {
		n.cut[link{from, to}] = true
	} else {
		delete(n.cut, link{from, to})
	}
}

// Isolate cuts a node off from all others, in both directions, until Heal.
func (n *Network[M]) Isolate(node int) { n.isolated[node] = true }

// Heal restores all links.
func (n *Network[M]) Heal() {
	clear(n.cut)
	clear(n.isolated)
}

// Stats returns the counts so far.
func (n *Network[M]) Stats() NetworkStats { return n.counts }

func (n *Network[M]) isCut(from, to int) bool {
	return n.cut[link{from, to}] || from != to && (n.isolated[from] || n.isolated[to])
}

// flight is a message in transit.
type flight[M any] struct {
	at       int64
	sequence uint64
	link
	message M
}

func (f *flight[M]) before(o *flight[M]) bool {
	return f.at < o.at || f.at == o.at && f.sequence < o.sequence
}

// flights is a binary heap, ordered by delivery time and then by sequence.
type flights[M any] []flight[M]

func (f *flights[M]) push(x flight[M]) {
	h := append(*f, x)
	*f = h
	i := len(h) - 1
	for i > 0 && x.before(&h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
}

func (f *flights[M]) pop() flight[M] {
	h := *f
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = flight[M]{}
	h = h[:len(h)-1]
	*f = h
	for i := 0; len(h) > 0; {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if child >= len(h) || last.before(&h[child]) {
			h[i] = last
			break
		}
		h[i] = h[child]
		i = child
	}
	return first
}
