// Package clusteredges has edges between nodes with every route and every policy.
package clusteredges

import (
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

// Stamp says which instance has sent a message, and the number of the message among those
// from this instance to the same receiver and, with several instances, to the same one.
type Stamp struct {
	By string
	N  int
}

type (
	// Keyed goes to the instance that its key selects.
	Keyed struct {
		Stamp
		Key string
	}
	// Numbered goes to instance To.
	Numbered struct {
		Stamp
		To int
	}
	// Some goes to some instances.
	Some struct{ Stamp }
	// All goes to all instances.
	All struct {
		Stamp
		Text []byte
	}
	// Near stays on its node.
	Near struct{ N int }
	// Far goes to the partner that its key selects.
	Far struct {
		N   int
		Key int
	}
	// Single goes to the only instance.
	Single struct {
		By string
		N  int
	}
	// Everywhere goes to the instances of all nodes.
	Everywhere struct {
		By   string
		N    int
		Text []byte
	}
	// Local stays on its node.
	Local struct{ N int }
	// Oldest is dropped if it is the oldest one and the queue is full.
	Oldest struct{ N int }
	// Newest is dropped if the queue is full.
	Newest struct{ N int }
	// Must fails if the queue is full.
	Must struct{ N int }
	// Wait waits while the queue is full.
	Wait struct{ N int }
)

// Clone copies the text, because the message goes to several instances.
func (m All) Clone() All {
	m.Text = append([]byte(nil), m.Text...)
	return m
}

// Clone copies the text.
func (m Everywhere) Clone() Everywhere {
	m.Text = append([]byte(nil), m.Text...)
	return m
}

// Messages is how many rounds of messages each source sends.
const Messages = 200

// Source sends a message along each of its edges in each round.
type Source struct {
	in topo.Instance
	n  int
}

// NewSource makes a source.
func NewSource(in topo.Instance) *Source { return &Source{in: in} }

var Keys = [...]string{"ada", "bob", "cyd", "dan", "eve", "fay", "gus"}

// Ping sends the next round.
func (s *Source) Ping(out *SourceSender) error {
	if s.n == Messages {
		return topo.Done
	}
	by := string(rune('0' + s.in.Index))
	key := Keys[s.n%len(Keys)]
	stamp := Stamp{by, s.n}
	s.n++
	return errors.Join(
		out.SendKeyed(Keyed{stamp, key}),
		out.SendNumbered(Numbered{stamp, s.n % 5}),
		out.SendSome(Some{stamp}),
		out.SendAll(All{stamp, []byte(key)}),
		out.SendNear(Near{s.n}),
		out.SendFar(Far{s.n, s.n}),
		out.SendSingle(Single{by, s.n}),
		out.SendEverywhere(Everywhere{by, s.n, []byte(key)}),
	)
}

// Log is what a receiver has received. The sends of a round have a fixed order, so from each
// sender the numbers must rise.
type Log struct {
	Last      map[string]int
	Count     map[string]int
	Unordered []string
}

// add notes message number n of a sender: the round times ten, plus the place in the round.
func (l *Log) add(by, message string, n int) {
	l.count(message)
	if last, ok := l.Last[by]; ok && n <= last {
		l.Unordered = append(l.Unordered, message+" of "+by)
	}
	l.Last[by] = n
}

// count notes a message whose order does not matter.
func (l *Log) count(message string) {
	if l.Last == nil {
		l.Last, l.Count = make(map[string]int), make(map[string]int)
	}
	l.Count[message]++
}

// Worker gets messages along every route.
type Worker struct{ Log }

// ReceiveKeyedFromSource takes a message of a source.
func (w *Worker) ReceiveKeyedFromSource(m *Keyed) { w.add(m.By, "Keyed", 10*m.N) }

// ReceiveKeyedFromApi takes a message from outside.
func (w *Worker) ReceiveKeyedFromApi(m Keyed) { w.add(m.By, "Keyed", 10*m.N) }

// ReceiveNumbered takes a message.
func (w *Worker) ReceiveNumbered(m Numbered) { w.add(m.By, "Numbered", 10*m.N+1) }

// ReceiveSome takes a message.
func (w *Worker) ReceiveSome(m Some) { w.add(m.By, "Some", 10*m.N+2) }

// ReceiveAll takes a message.
func (w *Worker) ReceiveAll(m All) error {
	if len(m.Text) != 3 {
		return errors.New("the text is damaged")
	}
	w.add(m.By, "All", 10*m.N+3)
	return nil
}

// Partner is on the same nodes as the sources, and passes messages on.
type Partner struct{ Log }

// ReceiveNear takes a message that has not left its node.
func (p *Partner) ReceiveNear(m Near) { p.add("near", "Near", m.N) }

// ReceiveFar takes a message and tells pinned.
func (p *Partner) ReceiveFar(m Far, out *PartnerSender) {
	p.count("Far")
	out.SendSingle(Single{"partner", m.N})
}

// Pinned is on one node.
type Pinned struct {
	Log
	Oldest []int
}

// ReceiveSingle takes a message of a source or a partner.
func (p *Pinned) ReceiveSingle(m *Single) error {
	if m.By == "partner" {
		p.count("partner")
		return nil
	}
	p.add(m.By, "Single", m.N)
	return nil
}

// ReceiveOldest takes a message.
func (p *Pinned) ReceiveOldest(m *Oldest) { p.Oldest = append(p.Oldest, m.N) }

// Probe is on every node.
type Probe struct {
	Log
	Near, Local []int
}

// ReceiveEverywhere takes a message that goes to all nodes.
func (p *Probe) ReceiveEverywhere(m *Everywhere) {
	m.Text[0]++ // the others must not see this
	p.add(m.By, "Everywhere", m.N)
}

// ReceiveNear takes a message that has not left its node.
func (p *Probe) ReceiveNear(m Near) { p.Near = append(p.Near, m.N) }

// ReceiveLocal takes a message that has not left its node.
func (p *Probe) ReceiveLocal(m Local) { p.Local = append(p.Local, m.N) }

// Watcher is once on every node.
type Watcher struct{ Log }

// ReceiveEverywhere takes a message that goes to all nodes.
func (w *Watcher) ReceiveEverywhere(m Everywhere) error {
	if text := string(m.Text); len(text) != 3 {
		return errors.New("the text is " + text)
	} else if m.By < "a" && text != Keys[(m.N-1)%len(Keys)] {
		return errors.New("another instance has changed the text to " + text)
	}
	w.add(m.By, "Everywhere", m.N)
	return nil
}

// Gates makes its senders wait.
type Gates struct {
	Log
	Must, Single int
}

// ReceiveKeyed takes a message.
func (g *Gates) ReceiveKeyed(m Keyed) { g.add(m.By, "Keyed", m.N) }

// ReceiveMust takes a message.
func (g *Gates) ReceiveMust(Must) { g.Must++ }

// ReceiveSingle takes a message.
func (g *Gates) ReceiveSingle(Single) { g.Single++ }

// Rounds is how many messages Burst sends along each edge.
const Rounds = 10

// Burst sends all its messages in one call.
type Burst struct{ Failed, Sent int }

// Ping sends them.
func (b *Burst) Ping(out *BurstSender) error {
	for i := range Rounds {
		switch err := out.SendMust(Must{i}); {
		case err == nil:
			b.Sent++
		case errors.Is(err, topo.ErrFull):
			b.Failed++
		default:
			return err
		}
		if err := errors.Join(out.SendOldest(Oldest{i}), out.SendNewest(Newest{i}), out.SendWait(Wait{i}), out.SendLocal(Local{i})); err != nil {
			return err
		}
	}
	return topo.Done
}

// Tight has short queues.
type Tight struct{ Oldest, Newest, Must, Wait []int }

// ReceiveOldest takes a message.
func (t *Tight) ReceiveOldest(m Oldest) { t.Oldest = append(t.Oldest, m.N) }

// ReceiveNewest takes a message.
func (t *Tight) ReceiveNewest(m Newest) { t.Newest = append(t.Newest, m.N) }

// ReceiveMust takes a message.
func (t *Tight) ReceiveMust(m *Must) { t.Must = append(t.Must, m.N) }

// ReceiveWait takes a message and passes it on.
func (t *Tight) ReceiveWait(m Wait, out *TightSender) error {
	t.Wait = append(t.Wait, m.N)
	return out.SendMust(Must(m))
}
