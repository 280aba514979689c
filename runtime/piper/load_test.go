package piper_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/route"
)

const (
	loadMessages = 200_000 // total
	loadGuests   = 8
	loadEach     = 4 // instances of each of the four processors
)

// TestLoad sends 200,000 messages from 8 goroutines through 16 instances on 4 workers,
// with three message types between one pair, a cycle and an edge that drops. No message
// may be lost, duplicated or out of order. Only a long run sends all of them.
func TestLoad(t *testing.T) {
	for i := range speed.Pick(t, 1, 1, 100) {
		load(t, uint64(i), speed.Pick(t, loadMessages/16, loadMessages/4, loadMessages))
	}
}

// Edges of the topology of TestLoad.
const (
	loadIn     = iota // door -> in
	loadFirst         // in -> mid, three types
	loadSecond        //
	loadThird         //
	loadNews          // in -> sink, drops the oldest
	loadRound         // mid -> loop
	loadBack          // loop -> mid
	loadOut           // mid -> sink
)

func load(t *testing.T, seed uint64, messages int) {
	messages -= messages % loadGuests
	by := func(c *cell, edge int, m message) error {
		m.key, m.keyed = m.key*31+1, true
		return c.send(edge, route.Uint(m.key, loadEach), m)
	}
	top := build(t, []proc{
		{name: "door", external: true},
		{name: "in", instances: loadEach, receive: func(c *cell, m *message) error {
			if m.seq%4 == 0 {
				if err := by(c, loadNews, *m); err != nil {
					return err
				}
			}
			return by(c, loadFirst+int(m.seq%3), *m)
		}},
		{name: "mid", instances: loadEach, receive: func(c *cell, m *message) error {
			if m.hops == 0 {
				return by(c, loadOut, *m)
			}
			m.hops--
			return by(c, loadRound, *m)
		}},
		{name: "loop", instances: loadEach, receive: func(c *cell, m *message) error { return by(c, loadBack, *m) }},
		{name: "sink", instances: loadEach},
	}, []edge{
		{from: 0, to: 1, capacity: 256},
		{from: 1, to: 2}, {from: 1, to: 2, capacity: 64}, {from: 1, to: 2, capacity: 3},
		{from: 1, to: 4, capacity: 16, full: dropOldest},
		{from: 2, to: 3}, {from: 3, to: 2},
		{from: 2, to: 4, capacity: 128},
	}, piper.Workers(4))
	var callers sync.WaitGroup
	for i := range loadGuests {
		g := top.externals[0].caller()
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		callers.Go(func() {
			for range messages / loadGuests {
				m := message{hops: r.IntN(3), key: r.Uint64(), keyed: true}
				if err := g.send(context.Background(), loadIn, route.Uint(m.key, loadEach), m); err != nil {
					top.violated("a send returns %v", err)
					return
				}
			}
		})
	}
	go func() { callers.Wait(); top.externals[0].Close() }()
	top.runWhole(t)
	if got := top.graph().Edge(loadOut).Received(); got != uint64(messages) {
		t.Errorf("%d of %d messages arrived", got, messages)
	}
}
