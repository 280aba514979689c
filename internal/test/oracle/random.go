package oracle

import (
	"math/rand/v2"
	"slices"
)

// A sequence is a configuration with steps.
type sequence struct {
	config Config
	debug  bool
	steps  []step
}

// generator makes random sequences. It carries the steps out on an oracle, so that many
// requests have the version, the state and the cursor that they need to succeed.
type generator struct {
	*rand.Rand
	server    *Server
	committed *Server
	clocks    *clocks
	debug     bool
	remote    bool     // for a server in another process, which commits each request
	pool      []string // ids of promises
	sent      []object // requests that can arrive again
	held      []object // requests that arrive later than others
	steps     []step
	requests  int
}

// requestsMax is the number of requests of a sequence.
const requestsMax = 80

func generate(seed uint64, remote bool) sequence {
	r := rand.New(rand.NewPCG(seed, 16))
	config := Config{RetryTimeout: []int64{40, 1_000, 30_000}[r.IntN(3)], UnblocksMax: []int{1, 2, 1_000}[r.IntN(3)], MissedMax: []int{1, 5, 10_000}[r.IntN(3)], Strict: r.IntN(8) == 0}
	debug := r.IntN(4) == 0 || remote
	g := &generator{Rand: r, server: New(config), clocks: newClocks(debug), debug: debug, remote: remote}
	g.committed = g.server.Clone()
	ids := []string{"a", "a:1", "a:1.2", "a:2", "a.b", "a.b:1", "b", "b:1", "b.c", "\U0001F600\"\\", "a\u00e9:1"}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	g.pool = ids[:5+r.IntN(5)]
	for len(g.steps) < 2*requestsMax && g.requests < requestsMax {
		g.next()
	}
	g.add(step{action: commit})
	return sequence{config, debug, g.steps}
}

// next adds a step.
func (g *generator) next() {
	g.clocks.pass(g.Rand, g.longest(), g.server.timers())
	switch n := g.IntN(100); {
	case n < 12 && g.remote:
		g.send(g.envelope("debug.tick", object{"time": g.clocks.wall}))
	case n < 12:
		g.add(step{action: tick, limit: 1 + g.IntN(4)})
	case n < 15 && len(g.server.outbox) > 0 && !g.remote:
		g.add(step{action: deliver, unblock: g.server.outbox[g.IntN(len(g.server.outbox))]})
	case n < 25:
		g.add(step{action: commit})
	case n < 27:
		g.add(step{action: crash})
	case n < 32 && len(g.sent) > 0:
		g.send(g.sent[g.IntN(len(g.sent))])
	case n < 37 && len(g.held) > 0:
		i := g.IntN(len(g.held))
		g.send(g.held[i])
		g.held = slices.Delete(g.held, i, i+1)
	case n < 42:
		g.held = append(g.held, g.request())
	default:
		g.send(g.request())
	}
}

// longest returns for how long the clocks may advance at once: not for more than about
// twenty occurrences of a schedule.
func (g *generator) longest() int64 {
	longest := int64(40_000)
	for _, c := range g.server.schedules {
		longest = min(longest, max(20*(next(c.Cron, c.NextRunAt)-c.NextRunAt), 1_000))
	}
	return longest
}

func (g *generator) send(r object) {
	g.requests++
	if len(g.sent) < 50 {
		g.sent = append(g.sent, r)
	}
	g.add(step{action: request, request: r, paged: isSearch(r) && g.chance(50)})
	if isSearch(r) && g.chance(60) {
		g.add(step{action: request, request: r, paged: true})
	}
}

// add adds a step, and carries it out.
func (g *generator) add(s step) {
	s.wall, s.run, s.remote = g.clocks.wall, g.clocks.run, g.remote
	g.steps = append(g.steps, s)
	switch s.action {
	case request:
		g.server.Apply(s.wall, s.run, s.body(nil))
	case tick:
		g.server.Tick(s.wall, s.run)
	case deliver:
		g.server.Delivered(s.promise, s.address)
	case commit:
		g.committed = g.server.Clone()
	case crash:
		g.server = g.committed.Clone()
	}
	if g.remote {
		g.committed = g.server.Clone()
	}
}
