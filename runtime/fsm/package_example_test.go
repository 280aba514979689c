package fsm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/topogen/topogen/runtime/fsm"
)

// Accounts is the state: the balance of each account.
type Accounts map[string]int

// Transfer is the update: it moves money from one account to another. If From is "", the
// money is a deposit.
type Transfer struct {
	From, To string
	Cents    int
}

var errNoFunds = errors.New("not enough money")

// Update checks all conditions before it changes the state. It returns the new balance of
// the receiver.
func (t *Transfer) Update(a *Accounts) (int, error) {
	if t.From != "" && (*a)[t.From] < t.Cents {
		return 0, errNoFunds
	}
	if *a == nil {
		*a = make(Accounts)
	}
	if t.From != "" {
		(*a)[t.From] -= t.Cents
	}
	(*a)[t.To] += t.Cents
	return (*a)[t.To], nil
}

// idleHost is a pool without other processors. In a program, generated code passes the
// pool of the topology to Start.
type idleHost struct{}

func (idleHost) BeginReply()   {}
func (idleHost) EndReply()     {}
func (idleHost) Wake()         {}
func (idleHost) Stepped() bool { return false }

// A state machine in memory: a caller proposes updates and reads the state. An update that
// returns an error changes nothing.
func Example() {
	ctx := context.Background()
	bank := fsm.NewProcessor(fsm.Definition[Accounts, Transfer, int]{Update: (*Transfer).Update})
	if err := bank.Start(ctx, idleHost{}); err != nil {
		panic(err)
	}
	defer bank.Close()

	for _, t := range []Transfer{{"", "ann", 100}, {"ann", "bob", 70}, {"ann", "bob", 70}} {
		balance, err := bank.Propose(ctx, t)
		fmt.Println(balance, err)
	}
	bank.Read(ctx, func(a *Accounts) { fmt.Println(*a) })
	// Output:
	// 100 <nil>
	// 70 <nil>
	// 0 not enough money
	// map[ann:30 bob:70]
}
