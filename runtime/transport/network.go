package transport

import "math/rand/v2"

// Faults says what a [Network] does to messages.
type Faults struct {
	Loss      float64 // the part of messages that is lost, 0 to 1
	Duplicate float64 // the part that arrives twice, each with a delay of its own, 0 to 1
	DelayMin  int64   // how long a message takes, in the unit of now;
	DelayMax  int64   // where they differ, messages overtake each other

	// Ordered keeps messages in the order that a [Transport] promises: as if all on a
	// link were of one group. A second copy of one may still come at any time. Without
	// it messages of every class overtake each other.
	Ordered bool
}

// Network is a network for simulations: it keeps messages of type M, between
// nodes with small numbers, until their time has come. It has no goroutine and
// no clock, is used by one goroutine, and does the same for the same seed and the
// same calls.
//
//	n := transport.NewNetwork[*raftpb.Message](rand.New(rand.NewPCG(seed, 0)), transport.Faults{Loss: 0.1, DelayMax: 20})
//	n.Send(now, 1, 2, m)
//	for {
//		if now, ok = n.Next(); !ok { break }
//		if from, to, m, ok := n.Deliver(now); ok { … }
//	}
//
// A message that arrives twice is the same M twice: where M holds pointers, who
// gets it must not change what they point to.
type Network[M any] struct {
	rng         *rand.Rand
	faults      Faults
	flights     flights[M]
	sequence    uint64             // of messages, so that those of one time keep their order
	lastArrival map[classKey]int64 // when the last message of a class arrives that was sent so far
	cut         map[link]bool
	isolated    map[int]bool
	counts      NetworkStats
}

// NetworkStats is what a [Network] has done. Sent + Duplicated is
// Delivered + Lost + what is under way.
type NetworkStats struct {
	Sent, Duplicated, Delivered, Lost uint64
}

type link struct{ from, to int }

// lineKey is a link's line of messages of one class, which keep their order.
type classKey struct {
	link
	class Class
}

// NewNetwork returns a network without cuts. All chance is drawn from rng.
func NewNetwork[M any](rng *rand.Rand, f Faults) *Network[M] {
	n := &Network[M]{rng: rng, lastArrival: make(map[classKey]int64), cut: make(map[link]bool), isolated: make(map[int]bool)}
	n.SetFaults(f)
	return n
}

// SetFaults changes what happens to the messages that are sent from now on.
func (n *Network[M]) SetFaults(f Faults) {
	f.DelayMin = max(f.DelayMin, 0)
	f.DelayMax = max(f.DelayMax, f.DelayMin)
	n.faults = f
}

// Send takes an Ordered message at a time. It is lost where the link is cut, and
// by chance.
func (n *Network[M]) Send(now int64, from, to int, m M) { n.SendAs(now, from, to, Ordered, m) }

// SendAs is Send for a message of any class. All chance is the same for each class.
func (n *Network[M]) SendAs(now int64, from, to int, class Class, m M) {
	n.counts.Sent++
	// The draws are the same whatever becomes of the message, so that a cut in one
	// run leaves the chances of all other messages as they are.
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

// arrival is when a message arrives that would arrive at a time if nothing else was
// under way: not before the one of its class that was sent before it. Bulk messages
// let Ordered ones go first, too; Urgent ones overtake both by chance alone.
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

// Next is when the next message arrives. It may turn out to be lost there, see
// [Network.Cut].
func (n *Network[M]) Next() (at int64, ok bool) {
	if len(n.flights) == 0 {
		return 0, false
	}
	return n.flights[0].at, true
}

// Deliver takes out the first message that arrives at that time or before. ok is
// false where there is none.
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

// Len is how many messages are under way.
func (n *Network[M]) Len() int { return len(n.flights) }

// Cut cuts or mends the link from one node to another, in this direction alone. A
// message is lost where its link is cut when it is sent or when it arrives: what
// is under way survives a short cut.
func (n *Network[M]) Cut(from, to int, cut bool) {
	if cut {
		n.cut[link{from, to}] = true
	} else {
		delete(n.cut, link{from, to})
	}
}

// Isolate cuts a node off from all others, in both directions, until Heal.
func (n *Network[M]) Isolate(node int) { n.isolated[node] = true }

// Heal mends all links.
func (n *Network[M]) Heal() {
	clear(n.cut)
	clear(n.isolated)
}

// Stats returns what has happened so far.
func (n *Network[M]) Stats() NetworkStats { return n.counts }

func (n *Network[M]) isCut(from, to int) bool {
	return n.cut[link{from, to}] || from != to && (n.isolated[from] || n.isolated[to])
}

// flight is a message under way.
type flight[M any] struct {
	at       int64
	sequence uint64
	link
	message M
}

func (f *flight[M]) before(o *flight[M]) bool {
	return f.at < o.at || f.at == o.at && f.sequence < o.sequence
}

// flights is a binary heap: what arrives first, and of one time what was sent
// first, is at the front.
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
