// Package unsendable has messages that cannot always be encoded: lists that
// contain themselves, very long lists, codecs that fail, and large texts.
package unsendable

import (
	"errors"
	"os"
	"strings"

	"github.com/topogen/topogen/runtime/topo"
)

// Parcel is a list or a tree that may contain itself.
type Parcel struct {
	Make string // name of the parcel that its receiver sends
	Load string
	Odd  Odd
	Next *Parcel
	Kids []*Parcel
	Tags []string
}

// Answer has the process and the counter of a child.
type Answer struct {
	Process, Handled int
	Parcel           *Parcel
}

// Task names the parcel that Inside sends.
type Task struct{ Make string }

// Odd has a codec that fails.
type Odd struct{ How string }

var errOdd = errors.New("this Odd cannot be written")

func (o Odd) MarshalBinary() ([]byte, error) {
	switch o.How {
	case "fails":
		return nil, errOdd
	case "panics":
		panic("this Odd panics")
	}
	return []byte(o.How), nil
}

func (o *Odd) UnmarshalBinary(b []byte) error {
	if o.How = string(b); o.How == "unreadable" {
		return errors.New("this Odd cannot be read")
	}
	return nil
}

const (
	Limit = 1 << 20   // message_limit in the file
	deep  = 100_000   // elements of a list, more than the maximum depth of a codec
	chunk = Limit / 4 // bytes of a load below the limit
)

// NewParcel makes a parcel by its name.
func NewParcel(name string) Parcel {
	p := Parcel{Make: name}
	switch name {
	case "cycle":
		p.Next = &p
		return *p.Next
	case "loaded cycle": // its encoding grows with each round
		p.Load = strings.Repeat("x", chunk)
		p.Next = &p
		return *p.Next
	case "deep":
		for range deep {
			p.Next = &Parcel{Next: p.Next}
		}
	case "doubling": // 40 steps, and 2 to the power of 40 parcels
		kid := new(Parcel)
		for range 40 {
			kid = &Parcel{Kids: []*Parcel{kid, kid}}
		}
		p.Next = kid
	case "shared": // the same text a million times
		p.Tags = make([]string, 1<<20)
		text := strings.Repeat("x", chunk)
		for i := range p.Tags {
			p.Tags[i] = text
		}
	case "large":
		p.Load = strings.Repeat("x", Limit)
	case "chunk":
		p.Load = strings.Repeat("x", chunk)
	case "fails", "panics", "unreadable":
		p.Odd.How = name
	}
	return p
}

// Unsendable are the names of the parcels that cannot be sent to a process.
var Unsendable = []string{"cycle", "loaded cycle", "deep", "doubling", "shared", "large", "fails", "panics"}

// Inside sends the parcels that its tasks name.
type Inside struct{}

func (Inside) ReceiveTask(t Task, out *InsideSender) { out.SendParcel(NewParcel(t.Make)) }

// Child runs in a process. It sends or returns the parcel that a message names.
type Child struct{ handled int }

func NewChild(topo.Instance) *Child { return new(Child) }

// ReceiveParcelFromInside counts.
func (c *Child) ReceiveParcelFromInside(*Parcel) { c.handled++ }

func (c *Child) ReceiveParcelFromApi(m *Parcel, out interface{ SendParcel(Parcel) }) (Answer, error) {
	c.handled++
	a := Answer{Process: os.Getpid(), Handled: c.handled}
	word, name, _ := strings.Cut(m.Make, " ")
	switch word {
	case "send":
		out.SendParcel(NewParcel(name))
	case "send-on":
		out.SendParcel(*m)
	case "send-many": // each of them could be sent alone
		for range 5 {
			out.SendParcel(NewParcel("chunk"))
		}
	case "answer":
		p := NewParcel(name)
		a.Parcel = &p
	case "send-and-answer":
		for range 3 {
			out.SendParcel(NewParcel("chunk"))
		}
		p := NewParcel("chunk")
		a.Parcel = &p
	}
	return a, nil
}

// Several ignores its messages.
type Several struct{}

func (Several) ReceiveParcel(*Parcel) {}

// Sink keeps the names of the parcels that it receives.
type Sink struct{ Got []string }

func (s *Sink) ReceiveParcel(m *Parcel) { s.Got = append(s.Got, m.Make) }

// Morgue keeps dead letters.
type Morgue struct{ Letters []topo.DeadLetter }

func (m *Morgue) ReceiveDeadLetter(d topo.DeadLetter) { m.Letters = append(m.Letters, d) }
