// Package replies has edges with replies between processors.
package replies

import (
	"fmt"

	"github.com/topogen/topogen/runtime/topo"
)

const Questions = 40

type (
	Ask      struct{ ID, From int }
	Check    struct{ ID, From int }
	Answer   struct{ ID, From int }
	Riddle   struct{ ID int }
	Solution struct{ ID int }
	Next     struct{}
	Note     struct{}
)

type Client struct {
	index, asked, Answers, Checks int
}

func NewClient(in topo.Instance) *Client { return &Client{index: in.Index} }

func (c *Client) Ping(out *ClientSender) error {
	if c.asked == Questions {
		return topo.Done
	}
	c.asked++
	if c.asked%2 == 0 {
		out.SendCheck(Check{c.asked, c.index})
	} else {
		out.SendAsk(Ask{c.asked, c.index})
	}
	return nil
}

func (c *Client) ReceiveAnswerFromDesk(m Answer, out *ClientSender) error {
	if m.From != c.index {
		return fmt.Errorf("instance %d got an answer for %d", c.index, m.From)
	}
	if m.ID%2 == 0 {
		c.Checks++
	} else {
		c.Answers++
	}
	out.SendNext(Next{})
	return nil
}

func (c *Client) ReceiveNext(Next) {}

type Single struct {
	Asked          bool
	Answers, Notes int
}

func (s *Single) Ping(out *SingleSender) error {
	if s.Asked {
		return topo.Done
	}
	s.Asked = true
	out.SendAsk(Ask{ID: 1, From: -1})
	return nil
}

func (s *Single) ReceiveAnswer(m *Answer) { s.Answers++ }
func (s *Single) ReceiveNote(Note)        { s.Notes++ }

type Desk struct{ Solved int }

func (d *Desk) ReceiveAsk(m Ask, out *DeskSender) (Answer, error) {
	out.SendRiddle(Riddle{m.ID})
	if m.From < 0 {
		out.SendNote(Note{})
	}
	return Answer(m), nil
}

func (d *Desk) ReceiveCheck(m *Check) Answer { return Answer(*m) }

func (d *Desk) ReceiveSolution(m Solution) { d.Solved++ }

// Oracle only replies.
type Oracle struct{}

func (Oracle) ReceiveRiddle(m Riddle) (Solution, error) { return Solution(m), nil }
