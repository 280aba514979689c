package raft

import (
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/fsm"
)

// state is the state of the replicated state machine: the table.
type state struct{ table *table.State }

// get returns the table, and makes an empty one in a zero state.
func (s *state) get() *table.State {
	if s.table == nil {
		s.table = table.NewState()
	}
	return s.table
}

// command is an encoded [table.Command]. It is decoded when it is applied, so that a
// command of a hostile member is refused on all nodes instead of ending them.
type command []byte

var stateCodec = fsm.Codec[state]{
	Append: func(b []byte, s *state) ([]byte, error) { return s.get().Append(b), nil },
	Consume: func(b []byte, s *state) (err error) {
		s.table, err = table.ReadState(b)
		return err
	},
}

var commandCodec = fsm.Codec[command]{
	Append:  func(b []byte, c *command) ([]byte, error) { return append(b, *c...), nil },
	Consume: func(b []byte, c *command) error { *c = b; return nil },
}

var outcomeCodec = fsm.Codec[table.Outcome]{
	Append: func(b []byte, o *table.Outcome) ([]byte, error) { return table.AppendOutcome(b, o), nil },
	Consume: func(b []byte, o *table.Outcome) (err error) {
		*o, err = table.ReadOutcome(b)
		return err
	},
}

// definition returns the state machine whose updates change a replica. restored is called
// if an update was applied to a state that the replica has not adopted.
func definition(r *table.Replica, notAdopted func()) fsm.Definition[state, command, table.Outcome] {
	return fsm.Definition[state, command, table.Outcome]{
		UpdateAt: func(b *command, s *state, e fsm.Entry) (table.Outcome, error) {
			revision := table.Revision{Term: e.Term, Index: e.Index, Position: uint32(e.Position)}
			c, err := table.ReadCommand(*b)
			if err != nil {
				c = &table.Command{} // a kind that is refused
			}
			out, adopted := r.ApplyTo(s.get(), revision, e.Time, c)
			if !adopted {
				notAdopted()
			}
			return out, nil
		},
		StateCodec: stateCodec, UpdateCodec: commandCodec, ResultCodec: outcomeCodec,
	}
}

// listener tells the table when the state was replaced by a snapshot.
type listener struct{ restored func() }

func (listener) Applied(fsm.Entry, uint64, []byte, string) {}

func (l listener) Restored(uint64) { l.restored() }
