// Package receivers has processors that send each message to two processors. The message
// says which instance of the second processor gets it.
package receivers

import (
	"context"
	"os"
	"strings"

	"github.com/topogen/topogen/runtime/topo"
)

// Item goes to the gate, and to instance To of shard.
type Item struct {
	From string
	To   int
}

// Order makes a relay send an item.
type Order struct{ To int }

// Outcome is the result of a send: the text of its error, or "".
type Outcome struct{ From, Err string }

func outcome(from string, err error) Outcome {
	if err != nil {
		return Outcome{from, err.Error()}
	}
	return Outcome{From: from}
}

// Variable is the environment variable with the destinations of the items of each source.
// After the last item, a source sends nothing more.
const Variable = "RECEIVERS"

// Destinations are the values of To in the variable, one digit each.
func Destinations() (list []int) {
	for _, digit := range strings.Fields(os.Getenv(Variable)) {
		list = append(list, int(digit[0]-'0'))
	}
	return list
}

// Source sends items until one of its sends fails because the topology stops.
type Source struct{ name string }

// NewSource makes a Source.
func NewSource(in topo.Instance) *Source { return &Source{in.Processor} }

type sourceOut interface {
	SendItem(Item) error
	SendOutcome(Outcome) error
}

func (s *Source) Serve(_ context.Context, out sourceOut) error {
	for _, to := range Destinations() {
		if err := out.SendOutcome(outcome(s.name, out.SendItem(Item{s.name, to}))); err != nil {
			return err
		}
	}
	return nil
}

// Relay sends an item for each order.
type Relay struct{ name string }

// NewRelay makes a Relay.
func NewRelay(in topo.Instance) *Relay { return &Relay{in.Processor} }

func (r *Relay) ReceiveOrder(o Order, out interface{ SendItem(Item) }) {
	out.SendItem(Item{r.name, o.To})
}

// Strict sends an item for each order too. Its send methods return errors.
type Strict struct{}

func (*Strict) ReceiveOrder(o Order, out *StrictSender) {
	out.SendOutcome(outcome("strict", out.SendItem(Item{"strict", o.To})))
}

// Gate counts items and outcomes. If Enter is not nil, it is called before each item.
type Gate struct {
	Enter    func()
	Items    map[string]int
	Outcomes []Outcome
}

func (g *Gate) ReceiveItem(i Item) {
	if g.Enter != nil {
		g.Enter()
	}
	if g.Items == nil {
		g.Items = make(map[string]int)
	}
	g.Items[i.From]++
}

func (g *Gate) ReceiveOutcome(o Outcome) { g.Outcomes = append(g.Outcomes, o) }

// Shard counts items.
type Shard struct{ Items map[string]int }

func (s *Shard) ReceiveItem(i Item) {
	if s.Items == nil {
		s.Items = make(map[string]int)
	}
	s.Items[i.From]++
}
