// Package clusterbroadcast has edges to the instances of all nodes.
package clusterbroadcast

import (
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/topo"
)

// Stamp says which instance has sent a message, and how many of this type it sent before.
type Stamp struct {
	By string
	N  int
}

type (
	// Word goes to all instances of all nodes.
	Word struct {
		Stamp
		Text []byte
	}
	// Must goes to all instances of all nodes, or to none.
	Must struct{ Stamp }
	// Echo goes to all nodes, from an instance that all nodes have.
	Echo struct{ Stamp }
	// Near stays on its node.
	Near struct{ N int }
)

// Clone copies the text, because the message goes to several instances.
func (m Word) Clone() Word {
	m.Text = append([]byte(nil), m.Text...)
	return m
}

// Messages is how many of each type a source sends.
const Messages = 100

// Source sends messages to all nodes.
type Source struct {
	by      string
	n, must int
}

// NewSource makes a source.
func NewSource(in topo.Instance) *Source { return &Source{by: fmt.Sprint("source", in.Index)} }

// Ping sends the next messages. It sends a Must again that was refused.
func (s *Source) Ping(out *SourceSender) error {
	refused := false
	if s.must < Messages {
		switch err := out.SendMust(Must{Stamp{s.by, s.must}}); {
		case errors.Is(err, topo.ErrFull):
			refused = true
		case err != nil:
			return err
		default:
			s.must++
		}
	}
	if s.n == Messages {
		if s.must == Messages {
			return topo.Done
		}
		if refused {
			return topo.Idle // until there is room
		}
		return nil
	}
	s.n++
	return errors.Join(
		out.SendWord(Word{Stamp{s.by, s.n - 1}, []byte("word")}),
		out.SendNear(Near{s.n}),
	)
}

// Log counts the messages of each sender, which must arrive in order.
type Log struct {
	Next   map[string]int
	Faults []string
}

func (l *Log) add(message string, s Stamp) {
	if l.Next == nil {
		l.Next = make(map[string]int)
	}
	key := message + " of " + s.By
	if s.N != l.Next[key] {
		l.Faults = append(l.Faults, fmt.Sprintf("%s: number %d instead of %d", key, s.N, l.Next[key]))
	}
	l.Next[key] = s.N + 1
}

// Wide has two instances on each node.
type Wide struct {
	Log
	By    string
	echos int
	Near  int
}

// ReceiveWord changes the text, which belongs to this instance, and tells all nodes.
func (w *Wide) ReceiveWord(m Word, out *WideSender) {
	w.add("Word", m.Stamp)
	if string(m.Text) != "word" {
		w.Faults = append(w.Faults, "shared text: "+string(m.Text))
	}
	copy(m.Text, "used")
	out.SendEcho(Echo{Stamp{w.By, w.echos}})
	out.SendNear(Near{w.echos})
	w.echos++
}

// ReceiveMust notes the message.
func (w *Wide) ReceiveMust(m Must) { w.add("Must", m.Stamp) }

// ReceiveNear counts the message.
func (w *Wide) ReceiveNear(Near) { w.Near++ }

// Narrow has one instance on each node.
type Narrow struct {
	Log
	Near int
}

// ReceiveWord changes the text, which belongs to this instance.
func (x *Narrow) ReceiveWord(m Word) {
	x.add("Word", m.Stamp)
	if string(m.Text) != "word" {
		x.Faults = append(x.Faults, "shared text: "+string(m.Text))
	}
	copy(m.Text, "used")
}

// ReceiveEcho notes the message.
func (x *Narrow) ReceiveEcho(m Echo) { x.add("Echo", m.Stamp) }

// ReceiveNear counts the message.
func (x *Narrow) ReceiveNear(Near) { x.Near++ }
