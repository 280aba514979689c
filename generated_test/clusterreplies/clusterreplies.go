// Package clusterreplies has edges with a reply between nodes.
package clusterreplies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	// Query asks for an answer.
	Query struct {
		ID   string
		To   int
		Text []string
	}
	// Answer is the reply to a Query, an Ask or a Check.
	Answer struct {
		ID, Text string
		By       int
	}
	// Order asks for a receipt.
	Order struct{ N int }
	// Hurry asks for a receipt, unless the queue is full.
	Hurry struct{ N int }
	// Receipt is the reply to an Order.
	Receipt struct{ N int }
	// Note has no reply.
	Note struct{ N int }
	// Ask is what a patron asks.
	Ask struct {
		ID string
		N  int
	}
	// Check is another thing that a patron asks.
	Check struct {
		ID string
		N  int
	}
	// Riddle is what a desk asks.
	Riddle struct{ N int }
	// Solution is the reply to a Riddle.
	Solution struct{ N, Square int }
)

// Clone copies the text.
func (q Query) Clone() Query {
	q.Text = slices.Clone(q.Text)
	return q
}

// answer puts the words together.
func answer(m *Query, by int) Answer { return Answer{m.ID, strings.Join(m.Text, " "), by} }

// Desk answers queries.
type Desk struct {
	Asked, Checked int
	Riddles        int
	Wrong          []string
}

// ReceiveQuery answers a query from outside.
func (d *Desk) ReceiveQuery(m *Query) Answer { return answer(m, 0) }

// ReceiveAsk answers a patron and asks the office.
func (d *Desk) ReceiveAsk(m Ask, out *DeskSender) Answer {
	d.Asked++
	out.SendRiddle(Riddle{m.N})
	return Answer{m.ID, "ask", m.N}
}

// ReceiveCheck answers a patron.
func (d *Desk) ReceiveCheck(m *Check) (Answer, error) {
	d.Checked++
	return Answer{m.ID, "check", m.N}, nil
}

// ReceiveSolution takes the reply to a riddle.
func (d *Desk) ReceiveSolution(m Solution) {
	d.Riddles++
	if m.Square != m.N*m.N {
		d.Wrong = append(d.Wrong, fmt.Sprint(m))
	}
}

// Clerk answers queries one by one. Some fail.
type Clerk struct{ Answered int }

// ErrUnknown is the error of a clerk.
var ErrUnknown = errors.New("the clerk does not know this")

// ReceiveQuery answers a query that has a text.
func (c *Clerk) ReceiveQuery(m Query) (Answer, error) {
	if len(m.Text) == 0 {
		return Answer{}, ErrUnknown
	}
	c.Answered++
	return answer(&m, m.To), nil
}

// Office is on one node and answers several kinds of messages.
type Office struct{ Notes, Orders, Hurries int }

// ReceiveQuery answers a query.
func (o *Office) ReceiveQuery(m Query) Answer { return answer(&m, -1) }

// ReceiveOrder gives a receipt.
func (o *Office) ReceiveOrder(m *Order) (Receipt, error) {
	o.Orders++
	return Receipt{m.N}, nil
}

// ReceiveHurry gives a receipt.
func (o *Office) ReceiveHurry(m Hurry) Receipt {
	o.Hurries++
	return Receipt(m)
}

// ReceiveNote takes a note.
func (o *Office) ReceiveNote(Note) { o.Notes++ }

// ReceiveRiddle solves a riddle.
func (o *Office) ReceiveRiddle(m Riddle) Solution { return Solution{m.N, m.N * m.N} }

// Attic has a queue that drops its oldest queries.
type Attic struct{ Answered int }

// ReceiveQuery answers a query.
func (a *Attic) ReceiveQuery(m *Query) Answer {
	a.Answered++
	return answer(m, -2)
}

// Asks is how many messages of each kind a patron sends.
const Asks = 100

// Patron asks desks.
type Patron struct {
	by      string
	n       int
	Answers map[string]int
	Wrong   []string
}

// NewPatron makes a patron.
func NewPatron(in topo.Instance) *Patron {
	return &Patron{by: fmt.Sprint("patron", in.Index), Answers: make(map[string]int)}
}

// Ping asks for two answers.
func (c *Patron) Ping(out *PatronSender) error {
	if c.n == Asks {
		return topo.Done
	}
	n := c.n
	c.n++
	out.SendAsk(Ask{c.id(n), n})
	out.SendCheck(Check{c.id(n), n})
	return nil
}

func (c *Patron) id(n int) string { return fmt.Sprint(c.by, "/", n) }

// ReceiveAnswer takes an answer.
func (c *Patron) ReceiveAnswer(m Answer) {
	c.Answers[m.Text]++
	if m.ID != c.id(m.By) {
		c.Wrong = append(c.Wrong, m.ID)
	}
}
