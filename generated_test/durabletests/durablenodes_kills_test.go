package durabletests_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestDurableNodesKilledLeaders runs orders on three nodes in processes of their own, and kills the
// leader of the store in the middle of them, twice. The first one starts again and continues
// its orders. The second one does not, and the two other nodes complete all orders. No
// finished step is repeated: after the next step of an order has begun, an earlier one does
// not run again.
func TestDurableNodesKilledLeaders(t *testing.T) {
	speed.Landing(t) // TestDurableNodesStartsAgain continues orders of a node; runtime/durable/replicated simulates its leaders
	t.Parallel()
	const orders, steps = 40, 10
	c := newCluster(t)
	for _, name := range names {
		c.start(name)
	}
	warm := 0 // orders until the workers of all nodes are connected
	for ; len(nodesOf(c.readEffects())) < len(names); warm++ {
		c.some(warm).ask(fmt.Sprint("warm-", warm), 1)
	}
	before := len(c.readEffects())
	results := make([]string, orders)
	var asking sync.WaitGroup
	for i := range orders {
		asking.Go(func() {
			order := fmt.Sprint("order-", i)
			for try := i; ; try++ { // the same id: the order is started once
				if line := c.some(try).ask(order, steps); strings.HasPrefix(line, "done") {
					results[i] = line
					return
				}
			}
		})
	}
	for _, round := range []struct {
		effects int
		again   bool
	}{{orders * steps / 4, true}, {orders * steps / 2, false}} {
		c.awaitEffects(before + round.effects)
		leader := c.leader()
		c.kill(leader)
		if next := c.leader(); next == leader {
			t.Fatalf("%s was killed and leads", leader)
		}
		if round.again {
			c.start(leader)
		}
	}
	asking.Wait()
	c.close()

	want := steps * (steps + 1) / 2
	for i, line := range results {
		if line != fmt.Sprintf("done order-%d %d", i, want) {
			t.Errorf("order %d: %q", i, line)
		}
	}
	effects := c.readEffects()
	at, done := map[string]int{}, 0
	for _, e := range effects {
		switch last, ok := at[e.order]; {
		case e.step < last:
			t.Errorf("%s: step %d ran on %s again after step %d", e.order, e.step, e.node, last)
		case ok && e.step > last+1 || !ok && e.step > 0:
			t.Errorf("%s: step %d ran before the one before it", e.order, e.step)
		}
		if at[e.order] = e.step; e.step == steps-1 {
			done++
		}
	}
	if done < orders {
		t.Errorf("%d orders reached the last step", done)
	}
	t.Logf("%d orders until all nodes had one; then %d steps of %d orders ran, %d of them again, on %v", warm, len(effects)-before, orders, len(effects)-before-orders*steps, nodesOf(effects[before:]))
}
