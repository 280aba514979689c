// Package model has a controller that cannot name generated types.
package model

import (
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/topo"
)

// Codec is an update of a state without a name.
type Codec struct{ Key, Value string }

func (c *Codec) Update(s *map[string]Codec) error {
	if *s == nil {
		*s = make(map[string]Codec)
	}
	(*s)[c.Key] = *c
	return nil
}

// Teller proposes to two state machines, and passes the answers of one of them on.
type Teller struct{ Asked, Logged int }

func (t *Teller) ReceiveTick(_ topo.Tick, out interface {
	ProposeToFsm(Codec)
	ProposeToRaft(Codec)
}) error {
	t.Asked++
	out.ProposeToFsm(Codec{"memory", "m"})
	out.ProposeToRaft(Codec{"disk", "d"})
	return nil
}

func (t *Teller) ReceiveFsmOutcome(m *fsm.Outcome[Codec, struct{}], out interface {
	SendFsmOutcome(fsm.Outcome[Codec, struct{}])
}) error {
	out.SendFsmOutcome(*m)
	return m.Err
}

func (t *Teller) ReceiveRaftOutcome(m fsm.Outcome[Codec, struct{}]) error { t.Logged++; return m.Err }
