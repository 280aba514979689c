package raft

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/runtime/fsm"
)

// walList is the state of a Processor: the committed transactions that the controller's
// own state does not cover. base and state are the controller's and differ between nodes.
type walList struct {
	base  uint64 // number of the last transaction that state covers
	state []byte // the controller's state from MarkApplied; nil: none yet
	list  [][]byte
}

// walUpdate is a transaction.
type walUpdate []byte

func (u *walUpdate) Update(l *walList) error {
	l.list = append(l.list, slices.Clone(*u))
	return nil
}

// last returns the number of the newest transaction.
func (l *walList) last() uint64 { return l.base + uint64(len(l.list)) }

// forget drops the transactions that the controller's state covers.
func (l *walList) forget(to uint64, state []byte) {
	if to <= l.base || to > l.last() {
		return
	}
	l.list = slices.Clone(l.list[to-l.base:])
	l.base, l.state = to, state
}

var walDefinition = fsm.Definition[walList, walUpdate, struct{}]{
	Update:     fsm.NoResult((*walUpdate).Update),
	StateCodec: walListCodec, UpdateCodec: walUpdateCodec,
}

var errWalList = errors.New("raft: a list of transactions is damaged")

var walListCodec = fsm.Codec[walList]{
	Append: func(b []byte, l *walList) ([]byte, error) {
		b = protowire.AppendVarint(b, l.base)
		b = protowire.AppendBytes(b, l.state)
		for _, t := range l.list {
			b = protowire.AppendBytes(b, t)
		}
		return b, nil
	},
	Consume: func(b []byte, l *walList) error {
		base, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return errWalList
		}
		b = b[n:]
		state, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errWalList
		}
		l.base, l.state = base, slices.Clone(state)
		for b = b[n:]; len(b) > 0; b = b[n:] {
			var t []byte
			if t, n = protowire.ConsumeBytes(b); n < 0 {
				return errWalList
			}
			l.list = append(l.list, slices.Clone(t))
		}
		return nil
	},
}

var walUpdateCodec = fsm.Codec[walUpdate]{
	Append:  func(b []byte, u *walUpdate) ([]byte, error) { return append(b, *u...), nil },
	Consume: func(b []byte, u *walUpdate) error { *u = b; return nil },
}
