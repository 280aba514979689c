package piper_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestInstancesComeAndGo sends messages at the moments at which idle instances return to the pool, among
// instances with long calls that form a cycle.
func TestInstancesComeAndGo(t *testing.T) {
	const nodes, rounds = 40, 30
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			sent, moves := 0, new(mover)
			top := build(t, []proc{
				{name: "feed", ping: func(c *cell) error {
					if sent%nodes == 0 {
						time.Sleep(time.Duration(r.IntN(3)) * 500 * time.Millisecond)
					}
					if sent++; sent > rounds*nodes {
						return topo.Done
					}
					return c.send(0, r.IntN(nodes), message{})
				}},
				{name: "node", instances: nodes, receive: func(c *cell, _ *message) error {
					switch c.calls % 7 {
					case int(seed):
						time.Sleep(time.Duration(c.number%4) * 12 * time.Millisecond)
					case 3:
						return c.send(1, (c.number*7+1)%nodes, message{})
					case 5:
						return c.send(2, c.number%3, message{})
					}
					return nil
				}},
				{name: "sink", instances: 3, receive: func(*cell, *message) error { return nil }},
			}, []edge{{from: 0, to: 1, capacity: 8}, {from: 1, to: 1, capacity: 4}, {from: 1, to: 2, capacity: 4}}, piper.Workers(2), piper.Observe(moves), new(journal).option())
			top.runWhole(t)
			left, back := moves.count("node", -1), moves.count("node", 0)+moves.count("node", 1)
			if left < nodes || back < nodes {
				t.Errorf("instances have left the pool %d times, and come back %d times", left, back)
			}
		})
	}
}
