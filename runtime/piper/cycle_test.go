package piper_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/topo"
)

// crawl builds a topology that fetches a page with the given number of links. Each link
// leads to a page without links.
func crawl(links, instances int) ([]proc, []edge) {
	return []proc{
		{ping: func(c *cell) error {
			if c.calls == 1 {
				return topo.Done
			}
			return c.send(0, 0, message{hops: 1})
		}},
		{name: "fetch", instances: instances, receive: func(c *cell, m *message) error { return c.send(1, 0, *m) }},
		{name: "parse", receive: func(c *cell, m *message) error {
			for i := range links * m.hops {
				if err := c.send(2, i%instances, message{}); err != nil {
					return err
				}
			}
			return nil
		}},
	}, []edge{{from: 0, to: 1}, {from: 1, to: 2}, {from: 2, to: 1}}
}

// TestAFiniteCrawlIsNotEndless handles a page with 150,000 links, which must not exceed
// the default limit, with few queues or many.
func TestAFiniteCrawlIsNotEndless(t *testing.T) {
	for _, instances := range []int{1, 1000} {
		procs, edges := crawl(150_000, instances)
		top := build(t, procs, edges, piper.Workers(2))
		top.runWhole(t)
		if got := top.graph().Edge(2).Received(); got != 150_000 {
			t.Errorf("%d instances: %d pages were fetched", instances, got)
		}
	}
}

// TestTheLimitOfACycleIsOfOneQueue checks that Run ends when one queue within a cycle
// reaches its limit, regardless of the number of queues. The error must have the counts
// and name the setting to raise.
func TestTheLimitOfACycleIsOfOneQueue(t *testing.T) {
	for _, c := range []struct{ links, limit, instances, want int }{
		{300_000, 5_000, 1, 5_000},
		{300_000, 0, 10, 0},
		{300_000, 20_000, 10, 20_000},
		{300_000, 1_000_000, 1, 0},
		{5_000, 10, 1, 1024}, // the limit is not below the capacity
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			if race.Enabled && c.want == 0 {
				t.Skip("takes long with the race detector; TestAFiniteCrawlIsNotEndless also ends normally")
			}
			procs, edges := crawl(c.links, c.instances)
			top := build(t, procs, edges, piper.Workers(2), piper.CycleLimit(c.limit))
			err := top.run(t, t.Context())
			if c.want == 0 {
				if err != nil {
					t.Errorf("Run returns %v", err)
				}
				return
			}
			if !errors.Is(err, piper.ErrCycleGrows) {
				t.Fatalf("Run returns %v", err)
			}
			text := err.Error()
			// With 10 instances, the queue of pages to parse may reach the limit first.
			if !regexp.MustCompile(`the queue of (parse -> fetch: M2 \(instance 0 to \d+\)|fetch -> parse: M1 \(instance \d+ to 0\)) holds`).MatchString(text) {
				t.Errorf("the error does not name the queue: %v", text)
			}
			for _, part := range []string{"parse -> fetch: M2", fmt.Sprintf("the limit is %d", c.want), "cycle_limit", "TOPOGEN_CYCLE_LIMIT", "pool.CycleLimit", "fetch -> parse: M1: "} {
				if !strings.Contains(text, part) {
					t.Errorf("the error must contain %q, got: %v", part, text)
				}
			}
			most := 0
			for l := range strings.Lines(text) {
				var held int
				if _, s, ok := strings.Cut(l, " holds "); ok {
					fmt.Sscan(s, &held)
					most = max(most, held)
				}
			}
			if most < c.want || most > c.want+c.want/4+1024 {
				t.Errorf("the queue holds %d, its limit is %d: %v", most, c.want, text)
			}
		})
	}
}

// TestTheLimitOfACycleInTheEnvironment checks that the environment overrides the
// topology file.
func TestTheLimitOfACycleInTheEnvironment(t *testing.T) {
	t.Setenv("TOPOGEN_CYCLE_LIMIT", "5000")
	procs, edges := crawl(300_000, 1)
	if err := build(t, procs, edges).run(t, t.Context()); err == nil || !strings.Contains(err.Error(), "the limit is 5000") {
		t.Errorf("Run returns %v", err)
	}
}

// BenchmarkFullCycle measures a send within a cycle with very many other queues that
// are full.
func BenchmarkFullCycle(b *testing.B) {
	const instances = 200
	sent := 0
	procs := []proc{
		{ping: func(c *cell) error {
			if c.calls == 1 {
				return topo.Done
			}
			return c.send(0, 0, message{})
		}},
		{instances: instances, receive: func(c *cell, _ *message) error {
			for i := range instances {
				if sent++; sent > b.N {
					return nil
				}
				if err := c.send(1, i, message{}); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	top := build(b, procs, []edge{{from: 0, to: 1}, {from: 1, to: 1, capacity: 2}}, piper.Workers(1), piper.CycleLimit(1<<30))
	b.ResetTimer()
	if err := top.pool.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
}
