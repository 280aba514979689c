package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The clients use several branches with several accounts each. Transfers stay within a
// branch, so that the history of each branch can be checked separately.
var cities = [...]string{"Berlin", "Kyoto", "Lagos", "Lima", "Oslo", "Perth", "Quito", "Riga"}
var owners = [...]string{"ann", "bob", "cid"}

const opening = 1000 // cents, in each account

// accountOf returns the name of an account.
func accountOf(branch, owner int) string { return cities[branch] + "/" + owners[owner] }

// cents are the balances of a branch.
type cents [len(owners)]int64

func centsOf(branch int, b balances) (c cents) {
	for owner := range c {
		c[owner] = b.Accounts[accountOf(branch, owner)]
	}
	return c
}

// operation is a request of a client.
type operation struct {
	read     bool
	from, to int // owners
	cents    int64
}

// result is the answer to a request.
type result struct {
	outcome Outcome
	cents   cents // of a read
}

// round holds the operations of a branch between two times at which no client was active.
// The balances at these times are known, because a client reads the branch between two
// rounds. The read after a round is the last operation of that round. So the whole
// history is linearizable if and only if each round is linearizable, from the known
// balances before it to the known balances after it.
type round struct {
	branch  int
	before  cents
	history []porcupine.Operation
}

// never is the return time of an operation with an unknown outcome: it may take place
// at any later time, or after all other operations, where it has no effect.
const never = math.MaxInt64

// model is the sequential specification of a branch.
func (r *round) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return r.before },
		Step: func(state, input, output any) (bool, any) {
			now, o, got := state.(cents), input.(operation), output.(result)
			if o.read {
				return got.cents == now, now
			}
			enough := now[o.from] >= o.cents
			if enough {
				now[o.from] -= o.cents
				now[o.to] += o.cents
			}
			return got.outcome == Unknown || enough == (got.outcome == Booked), now
		},
		DescribeOperation: func(input, output any) string { return describe(r.branch, input.(operation), output.(result)) },
	}
}

func describe(branch int, o operation, got result) string {
	if o.read {
		return fmt.Sprintf("%s holds %v", cities[branch], got.cents)
	}
	return fmt.Sprintf("%s: %s to %s %d: %v", cities[branch], owners[o.from], owners[o.to], o.cents, got.outcome)
}

// checker checks rounds and holds the result.
type checker struct {
	rounds, operations int
	failed             error // the first round that is not linearizable
}

const roundTimeout = time.Minute // for the check of a round, which normally takes milliseconds

// check checks rounds as they arrive.
func (c *checker) check(rounds <-chan *round) {
	for r := range rounds {
		c.rounds++
		c.operations += len(r.history)
		switch porcupine.CheckOperationsTimeout(r.model(), r.history, roundTimeout) {
		case porcupine.Illegal:
			c.fail(fmt.Errorf("NOT linearizable, starting with %v:\n%s", r.before, r))
		case porcupine.Unknown:
			c.fail(fmt.Errorf("the check was not finished within %v", roundTimeout))
		}
	}
}

func (c *checker) fail(err error) {
	if c.failed == nil {
		c.failed = err
	}
}

// String returns the history, one line for each operation.
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
