// Package messagesunfitforprocess has messages that mean nothing in another process.
package messagesunfitforprocess

import (
	"errors"

	"github.com/topogen/topogen/generated_test/testdata/messages_unfit_for_process/other"
	"github.com/topogen/topogen/runtime/topo"
)

type Order struct {
	Account string
	Lines   []*Line
	Ümlaut  struct{ Rückruf func() }
	Best    map[*Line]int
	First   int      `topo:"7"`
	Second  int      `topo:"7"`
	Third   int      `topo:"third"`
	Left    chan int `topo:"-"`
}

type Line struct {
	Item any
	Next map[string][]error
}

// Receipt leads to Line too, which is reported once.
type Receipt struct {
	Lines [2]Line
	Apart []other.Far
}

// Signal is no struct.
type Signal chan int

type Cents int

// Private does not cross.
type Private struct{ Done chan int }

type Ask struct{ ID int }

type Answer struct{ Err error }

type Callback func()

type Feed struct{}

func (*Feed) Ping(out *FeedSender) error     { return topo.Done }
func (*Feed) ReceiveAsk(Ask) (Answer, error) { return Answer{}, errors.ErrUnsupported }

type Till struct{}

func (*Till) ReceiveOrder(*Order)     {}
func (*Till) ReceiveReceipt(Receipt)  {}
func (*Till) ReceiveSignal(Signal)    {}
func (*Till) ReceiveFar(*other.Far)   {}
func (*Till) ReceiveCents(Cents)      {}
func (*Till) ReceiveTick(topo.Tick)   {}
func (*Till) ReceiveAnswer(Answer)    {}
func (*Till) ReceiveAsk(Ask) Callback { return nil }

type Plain struct{}

func (*Plain) ReceivePrivate(Private) {}

type Morgue struct{}

func (*Morgue) ReceiveDeadLetter(topo.DeadLetter) {}
