// Package policies fills queues with each policy.
package policies

import (
	"errors"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	Go    struct{ N int }
	Old   struct{ N int }
	Fresh struct{ N int }
	Must  struct{ N int }
	Wait  struct{ N int }
	Seen  struct{ N int }
)

// Burst sends ten of each at once, then ends.
type Burst struct{ Failed, Sent int }

func (b *Burst) Ping(out *BurstSender) error {
	for i := range 10 {
		if err := out.SendFresh(Fresh{i}); err != nil {
			return err
		}
		switch err := out.SendMust(Must{i}); {
		case err == nil:
			b.Sent++
		case errors.Is(err, topo.ErrFull):
			b.Failed++
		default:
			return err
		}
	}
	if err := out.SendGo(Go{10}); err != nil {
		return err
	}
	return topo.Done
}

// Relay sends a given number of each message, alternately.
type Relay struct{ Failed, Sent int }

func (r *Relay) ReceiveGo(m Go, out *RelaySender) error {
	for i := range m.N {
		out.SendOld(Old{i})
		out.SendFresh(Fresh{i})
		if err := out.SendMust(Must{i}); err != nil {
			r.Failed++
		} else {
			r.Sent++
		}
		out.SendWait(Wait{i})
		out.SendSeen(Seen{i})
	}
	return nil
}

type Plain struct{ Old, Fresh []int }

func (p *Plain) ReceiveOld(m Old) error { p.Old = append(p.Old, m.N); return nil }
func (p *Plain) ReceiveFresh(m Fresh)   { p.Fresh = append(p.Fresh, m.N) }

type Pointers struct{ Old, Must []int }

func (p *Pointers) ReceiveOld(m *Old)         { p.Old = append(p.Old, m.N) }
func (p *Pointers) ReceiveMust(m *Must) error { p.Must = append(p.Must, m.N); return nil }

// Ordered checks the order of messages over all edges.
type Ordered struct {
	Old, Fresh, Must, Wait, Seen []int
	step                         int
	Bad                          bool
}

// next compares the position of a message in its round with the previous message.
func (o *Ordered) next(n, place int) {
	step := n*5 + place
	o.Bad = o.Bad || step < o.step
	o.step = step
}

func (o *Ordered) ReceiveOld(m *Old) { o.next(m.N, 0); o.Old = append(o.Old, m.N) }
func (o *Ordered) ReceiveFresh(m *Fresh) error {
	o.next(m.N, 1)
	o.Fresh = append(o.Fresh, m.N)
	return nil
}
func (o *Ordered) ReceiveMust(m Must) error { o.next(m.N, 2); o.Must = append(o.Must, m.N); return nil }
func (o *Ordered) ReceiveWait(m Wait)       { o.next(m.N, 3); o.Wait = append(o.Wait, m.N) }
func (o *Ordered) ReceiveSeen(m Seen) error { o.next(m.N, 4); o.Seen = append(o.Seen, m.N); return nil }
