// Package sample has one of most features: a key, ordered messages on three edges, a dropping
// queue, a self edge, a request from outside, a timer.
package sample

import (
	"context"
	"strconv"

	"github.com/topogen/topogen/runtime/topo"
)

type Raw struct{ Line string }
type Good struct{ N int }
type Bad struct{ S string }
type Stat struct{ N int }
type Note struct{ Left int }
type Query struct{ ID int }
type Answer struct{ Text string }

type Feed struct{ n int }

func (f *Feed) Ping(out *FeedSender) error {
	if f.n == 1000 {
		return topo.Done
	}
	f.n++
	return out.SendRaw(Raw{strconv.Itoa(f.n)})
}

type Parser struct{}

func (p *Parser) ReceiveRaw(m *Raw, out *ParserSender) error {
	n, err := strconv.Atoi(m.Line)
	if err != nil {
		out.SendBad(Bad{m.Line})
		return nil
	}
	out.SendStat(Stat{n})
	if n%2 == 0 {
		out.SendGood(Good{n})
	} else {
		out.SendBad(Bad{m.Line})
	}
	return nil
}

func (p *Parser) ReceiveQuery(ctx context.Context, q Query) (Answer, error) {
	return Answer{"answer " + strconv.Itoa(q.ID)}, nil
}

type Audit struct {
	Good, bad, stats, notes, ticks int
}

func (a *Audit) ReceiveGood(m Good, out *AuditSender) {
	a.Good++
	if m.N == 500 {
		out.SendNote(Note{10})
	}
}
func (a *Audit) ReceiveBad(m Bad)   { a.bad++ }
func (a *Audit) ReceiveStat(m Stat) { a.stats++ }
func (a *Audit) ReceiveNote(m Note, out *AuditSender) error {
	a.notes++
	if m.Left > 0 {
		out.SendNote(Note{m.Left - 1})
	}
	return nil
}
func (a *Audit) ReceiveTick(t topo.Tick) error { a.ticks++; return nil }
