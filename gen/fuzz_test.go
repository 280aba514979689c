package gen_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec/finding"
)

// seeds are topologies whose options all bind to fuzzPackage.
var seeds = []string{
	"feed -> parser: Raw", "feed -> parser: {message: Raw, key: Line}", "feed -> parser: {message: Raw, key: Account}",
	"feed -> parser: {message: Raw, key: B}", "feed -> parser: {message: Raw, key: Done}",
	"feed -> parser: {message: Raw, route: local}", "feed -> parser: {message: Raw, route: {id: Account}}",
	"feed -> parser: {message: Raw, route: {range: {offset: 0, count: 2}}}", "feed -> parser: {message: Blob, route: broadcast}",
	"feed -> parser: {message: Raw, key: Line, full: drop-oldest}", "feed -> parser: {message: Raw, key: Line, full: drop-newest, capacity: 1}",
	"feed -> parser: {message: Raw, key: Line, full: fail}", "parser -> audit: {message: Order, reply: Price}",
	"parser -> parser: {message: Price, key: ID}", "audit -> audit: Price", "every 1s -> audit", "every 1s -> parser",
	"api -> parser: {message: Order, key: Account, reply: Price, timeout: 2s}", "api -> audit: {message: Order, full: fail}",
}

func topologyOf(edges ...string) []byte {
	return []byte("version: 1\nname: orders\nprocessors:\n  feed: {}\n  parser: {instances: 2}\n  audit: {}\n  api: {external: true}\nedges:\n  - " +
		strings.Join(edges, "\n  - ") + "\n")
}

// failing adds settings for failures and isolation to a topology.
func failing(source []byte) []byte {
	return []byte(strings.NewReplacer(
		"feed: {}", "feed: {isolation: process, restart: on-failure}",
		"instances: 2", "instances: 2, isolation: process, memory: 64MiB, restart: {policy: always, delay: 1s, max_delay: 5s, window: 1h, max_restarts: 3, jitter: 0.1}, health: {timeout: 1s, startup_timeout: 2s}, on_error: {then: retry, max_attempts: 3, delay: 1s, max_delay: 5s, jitter: 0.1, dead_letter: audit}",
		"audit: {}", "audit: {on_error: skip}",
		"edges:\n", "health_check_interval: 1s\ngroups: {g: {processors: [feed, parser], strategy: rest-for-one, intensity: 3, period: 5s, shutdown: 1s}}\npool: {cycle_limit: 1000}\nedges:\n",
	).Replace(string(source)))
}

// clustered adds a cluster to a topology.
func clustered(source []byte) []byte {
	return []byte(strings.NewReplacer(
		"processors:\n", "cluster:\n  nodes: {n1: \"127.0.0.1:7400\", n2: \"127.0.0.1:7401\", n3: \"127.0.0.1:7402\"}\n  retry: {timeout: 5s}\nprocessors:\n",
		"audit: {}", "audit: {placement: {node: n2}}",
		"message: Order,", "message: Order, delivery: at-most-once,",
	).Replace(string(source)))
}

// FuzzGenerate checks that every accepted topology compiles. Generate type-checks its output;
// this must not fail.
func FuzzGenerate(f *testing.F) {
	for i, edge := range seeds {
		if i%speed.Pick(f, 6, 1, 1) > 0 {
			continue
		}
		f.Add(topologyOf(edge))
		f.Add(topologyOf(edge, seeds[(i+7)%len(seeds)], seeds[(i+12)%len(seeds)]))
		f.Add(failing(topologyOf("feed -> parser: {message: Price, key: ID}", edge)))
		f.Add(clustered(topologyOf("feed -> parser: {message: Price, key: ID}", edge)))
	}
	path, err := filepath.Abs("testdata/orders/topology.yml")
	if err != nil {
		f.Fatal(err)
	}
	known := cache.Open(f.TempDir()) // the go command is asked once
	f.Fuzz(func(t *testing.T, source []byte) {
		r, findings := gen.Generate(t.Context(), gen.Input{Path: path, Source: source}, gen.Options{Cache: known})
		for _, finding := range findings {
			if strings.Contains(finding.Message, "would be generated") {
				t.Fatalf("%s\n%s", finding.Message, source)
			}
		}
		if !finding.HasErrors(findings) && len(r.Files) < 2 {
			t.Fatalf("nothing is wrong, and %d files are written\n%s", len(r.Files), source)
		}
	})
}
