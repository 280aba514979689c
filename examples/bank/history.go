package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The clients use so many branches of so many accounts. Transfers stay within a
// branch, so that the history of each can be checked by itself.
var cities = [...]string{"Berlin", "Kyoto", "Lagos", "Lima", "Oslo", "Perth", "Quito", "Riga"}
var owners = [...]string{"ann", "bob", "cid"}

const opening = 1000 // cents, in each account

// accountOf is the name of an account.
func accountOf(branch, owner int) string { return cities[branch] + "/" + owners[owner] }

// cents are the balances of a branch.
type cents [len(owners)]int64

func centsOf(branch int, b balances) (c cents) {
	for owner := range c {
		c[owner] = b.Accounts[accountOf(branch, owner)]
	}
	return c
}

// operation is what a client has asked for.
type operation struct {
	read     bool
	from, to int // owners
	cents    int64
}

// result is what it was told.
type result struct {
	outcome Outcome
	cents   cents // of a read
}

// round is what the clients of a branch did between two moments in which none of
// them did anything. What a branch held then is known by reading it, so the whole
// history is linearizable if and only if each round is: from the one reading to the
// other, which is its last operation.
type round struct {
	branch  int
	before  cents
	history []porcupine.Operation
}

// never is when an operation returns whose outcome is not known: it may take place
// at any time, or, behind all others, without anybody noticing.
const never = math.MaxInt64

// model says what one who does one thing after the other would be told.
func (r *round) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return r.before },
		Step: func(state, input, output any) (bool, any) {
			now, o, told := state.(cents), input.(operation), output.(result)
			if o.read {
				return told.cents == now, now
			}
			enough := now[o.from] >= o.cents
			if enough {
				now[o.from] -= o.cents
				now[o.to] += o.cents
			}
			return told.outcome == Unknown || enough == (told.outcome == Booked), now
		},
		DescribeOperation: func(input, output any) string { return describe(r.branch, input.(operation), output.(result)) },
	}
}

func describe(branch int, o operation, told result) string {
	if o.read {
		return fmt.Sprintf("%s holds %v", cities[branch], told.cents)
	}
	return fmt.Sprintf("%s: %s to %s %d: %v", cities[branch], owners[o.from], owners[o.to], o.cents, told.outcome)
}

// verdict is what became of checking rounds.
type verdict struct {
	rounds, operations int
	failed             error // the first round that is not linearizable
}

const roundTimeout = time.Minute // for the check of a round: it takes milliseconds

// check checks rounds as they come.
func (v *verdict) check(rounds <-chan *round) {
	for r := range rounds {
		v.rounds++
		v.operations += len(r.history)
		switch porcupine.CheckOperationsTimeout(r.model(), r.history, roundTimeout) {
		case porcupine.Illegal:
			v.fail(fmt.Errorf("NOT linearizable, from %v on:\n%s", r.before, r))
		case porcupine.Unknown:
			v.fail(fmt.Errorf("not decided within %v", roundTimeout))
		}
	}
}

func (v *verdict) fail(err error) {
	if v.failed == nil {
		v.failed = err
	}
}

// String is the history, a line for each operation.
func (r *round) String() string {
	var b strings.Builder
	for _, o := range r.history {
		returned := "never"
		if o.Return != never {
			returned = time.Duration(o.Return).String()
		}
		fmt.Fprintf(&b, "client %d, %v to %v: %s\n", o.ClientId, time.Duration(o.Call), returned, describe(r.branch, o.Input.(operation), o.Output.(result)))
	}
	return b.String()
}
