package replicated

import (
	"context"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/store"
)

// groupClock is the clock of an engine: the time of day that a majority of the nodes agree
// on. Deadlines that a wrong clock of the leader had ended could not be opened again.
type groupClock struct {
	engine.Clock
	machine *machine
}

// Wall implements engine.Clock. It costs no message: each message of Raft has the clock of its
// sender.
func (c groupClock) Wall() time.Time {
	at, _ := c.machine.Agreed() // the zero time if it is not known
	return at
}

// clockWait is the time after which a leader logs that it does not know the clocks of the
// others. The votes for it had them already, and it looks at them at each heartbeat.
const clockWait = 5 * time.Second

// awaitClock waits until the time of day is known. A new store would begin in 1970.
func (n *Node) awaitClock(ctx context.Context) error {
	began, logged := time.Now(), false
	for {
		if _, known := n.machine.Agreed(); known || ctx.Err() != nil {
			return ctx.Err()
		}
		if !logged && time.Since(began) > clockWait {
			logged = true
			n.log.Warn("durable: this node leads and waits for the clocks of a majority of the nodes: correct clocks that are before 1970 or after 2116")
		}
		wait(ctx, retryInterval/10)
	}
}

// voters returns the number of nodes whose clocks are compared.
func (n *Node) voters() (count int) {
	for _, m := range n.machine.Status().Members {
		if !m.Learner {
			count++
		}
	}
	return count
}

// setBack sets the time of the promises back to that of a majority of the nodes.
func (n *Node) setBack(s store.Store) error {
	at, known := n.machine.Agreed()
	if !known {
		return nil // the clocks are too old; the next leader tries it
	}
	var stored time.Time
	err := s.View(func(tx store.Tx) error {
		last, _, err := engine.LastCommit(tx)
		stored = time.UnixMilli(last.Wall)
		return err
	})
	if err != nil || stored.Sub(at) <= engine.JumpMax {
		return err
	}
	if err := engine.SetBack(s, at); err != nil {
		return err
	}
	n.log.Warn("durable: the time of the promises was ahead of the clocks of the nodes, and was set back", "from", stored, "to", at)
	return nil
}
