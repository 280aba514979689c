package piper_test

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// TestThousandsOfCallsThatHang has many instances of which thousands get a call of 100 ms at once. The number of
// goroutines for them is bounded by the limit for instances that leave the pool and by the rate at which the
// monitor takes workers, whatever the number of instances is.
func TestThousandsOfCallsThatHang(t *testing.T) {
	speed.NoRace(t)
	const workers, took = 2, 100 * time.Millisecond
	instances, hang := speed.Pick(t, 10_000, 100_000, 100_000), speed.Pick(t, 2000, 5000, 5000)
	synctest.Test(t, func(t *testing.T) {
		var top *topology
		var mu sync.Mutex
		sent, called, most, limit := 0, 0, 0, 0
		top = build(t, []proc{
			{ping: func(c *cell) error {
				for ; sent < instances; sent++ {
					if err := c.send(0, sent, message{}); err != nil {
						return err
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if called < hang {
					return topo.Idle // the inputs stay open, so that idle instances return to the pool
				}
				return topo.Done
			}},
			{instances: instances, receive: func(c *cell, _ *message) error {
				if c.number >= hang {
					return nil
				}
				mu.Lock()
				now, of := piper.Outside(top.pool, took)
				called, most, limit = called+1, max(most, now), of
				mu.Unlock()
				time.Sleep(took)
				return nil
			}},
		}, []edge{{from: 0, to: 1, capacity: 1}}, piper.Workers(workers), piper.Logger(slog.New(slog.DiscardHandler)))
		top.runWhole(t)
		if most > limit {
			t.Errorf("%d instances are outside the pool at once, want at most %d", most, limit)
		}
		t.Logf("at most %d instances are outside the pool at once", most)
	})
}
