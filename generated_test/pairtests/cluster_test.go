package pairtests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
)

// severalNodes is the design of the topologies that run on the nodes of a cluster.
var severalNodes = design{clusterFactors, clusterRefusals, 1}

// clusterRowsMax is the number of topologies of a landing run: the first of a covering array, which
// have most of the pairs. A long run has all.
const clusterRowsMax = 6

// clusterFactors are the options of a cluster, and options with which they may interact. All other
// options have their default.
var clusterFactors = []factor{
	{"nodes", []string{"3", "2"}},
	{"fence", []string{"tie_breaker", "majority", "off"}},
	{"addresses", []string{"raft", "broadcast"}},
	{"profile", []string{"local", "lan", "document", "other"}},
	{"detector", []string{"swim", "memberlist"}},
	{"resend", []string{"default", "short"}},
	{"neighborhood", []string{"default", "1"}},
	{"moves", []string{"default", "none", "minimal-move"}},
	{"feed", []string{"ping", "serve", "outside"}},
	{"feed.instances", []string{"1", "2"}},
	{"feed.place", []string{"spread", "every-node", "node"}},
	{"work.instances", []string{"3", "1"}},
	{"work.place", []string{"spread", "every-node", "node"}},
	{"sink.place", []string{"spread", "every-node", "node"}},
	{"work", []string{"pool", "blocking"}},
	{"restart", []string{"on-failure", "none", "limited"}},
	{"on_error", []string{"none", "skip", "delayed"}},
	{"letters", []string{"no", "yes"}},
	{"route", []string{"key", "id", "broadcast", "local", "range", "node"}},
	{"delivery", []string{"default", "at-least-once", "at-most-once"}},
	{"full", []string{"block", "drop-oldest", "drop-newest", "fail"}},
	{"capacity", []string{"default", "4"}},
	{"two", []string{"no", "feed", "other"}},
	{"reply", []string{"no", "yes"}},
	{"timer", []string{"no", "tick"}},
	{"group", []string{"no", "one-for-one", "one-for-all"}},
	{"input", []string{"no", "default"}},
	{"loop", []string{"no", "yes"}},
	{"form", []string{"value", "pointer", "clone"}},
	{"machine", []string{"no", "memory", "log"}},
}

// clusterRefusals are the combinations that topogen refuses.
var clusterRefusals = []refusal{
	{row{"nodes": "2", "fence": "majority"}, "TG232"},
	{row{"feed": "outside", "feed.instances": "2"}, "TG208"},
	{row{"feed": "serve", "reply": "yes"}, "TG313"},
	{row{"feed": "outside", "route": "local", "work.place": "spread|node"}, "TG216"},
	{row{"feed": "outside", "route": "local|node", "work.place": "every-node", "work.instances": "3"}, "TG216"},
	{row{"work.place": "every-node", "route": "key|id|range"}, "TG216"},
	{row{"work.place": "spread|node", "route": "node"}, "TG216"},
	{row{"work.instances": "1", "route": "range"}, "TG207"},
	{row{"work.place": "every-node", "route": "local", "delivery": "at-least-once|at-most-once"}, "TG215"},
	{row{"work.instances": "1", "work.place": "spread", "feed.instances": "1", "feed.place": "spread", "route": "local", "delivery": "at-least-once|at-most-once"}, "TG215"},
	{row{"work.instances": "1", "work.place": "spread", "two": "other", "route": "local", "delivery": "at-least-once|at-most-once"}, "TG215"},
	{row{"work.place": "spread|every-node", "machine": "memory|log"}, "TG222"},
	{row{"work.place": "spread|node", "group": "one-for-all"}, "TG217"},
	{row{"sink.place": "spread|node", "group": "one-for-all"}, "TG217"},
	{row{"route": "key|id|range", "group": "one-for-all"}, "TG217"}, // each of them needs other placements of work
	{row{"machine": "memory|log", "group": "one-for-all"}, "TG222"},
	{row{"machine": "memory|log", "route": "node"}, "TG222"},
	{row{"restart": "none", "group": "no", "letters": "yes", "on_error": "none"}, "TG215"},
}

// base returns the row in which all factors of a design have their default.
func (d design) base() row {
	r := defaults()
	for _, f := range d.factors {
		r[f.name] = f.values[0]
	}
	return r
}

// isCluster reports whether the topology runs on several nodes.
func (r row) isCluster() bool { return r["nodes"] != "" }

// cluster returns the section cluster of the topology file.
func (r row) cluster() string {
	nodes := []string{`n1: "127.0.0.1:7401"`, `n2: "127.0.0.1:7402"`, `n3: "127.0.0.1:7403"`}
	if r["nodes"] == "2" {
		nodes = nodes[:2]
	}
	membership := []string{"profile: " + r["profile"]}
	if r["profile"] == "other" {
		membership = []string{"interval: 200ms", "direct_timeout: 50ms", "suspicion: 1s", "helpers: 1"}
		if r["detector"] == "swim" {
			membership = append(membership, "indirect_timeout: 100ms")
		}
	}
	membership = append(membership, "detector: "+r["detector"])
	list := []string{"nodes: {" + strings.Join(nodes, ", ") + "}", "addresses: " + r["addresses"], "membership: {" + strings.Join(membership, ", ") + "}"}
	switch r["fence"] {
	case "tie_breaker":
		list = append(list, "fence: majority", "tie_breaker: n1")
	case "off":
		list = append(list, "fence: off")
	}
	if r["resend"] == "short" {
		list = append(list, "retry: {timeout: 1s, min: 10ms, max: 100ms}")
	}
	if r["neighborhood"] != "default" {
		list = append(list, "neighborhood: "+r["neighborhood"])
	}
	if r["moves"] != "default" {
		list = append(list, "rebalance: "+r["moves"])
	}
	return fmt.Sprintf("cluster: {%s}\n", strings.Join(list, ", "))
}

// nodeOf has the node of the processors whose placement is {node: NAME}.
var nodeOf = map[string]string{"feed": "n1", "work": "n2", "sink": "n1"}

// placement returns the placement of a processor.
func (r row) placement(name string) []string {
	switch place := r[name+".place"]; {
	case !r.isCluster() || name == "ledger" || name == "feed" && r["feed"] == "outside":
		return nil
	case name == "morgue":
		return []string{"placement: every-node"}
	case place == "node":
		return []string{"placement: {node: " + nodeOf[name] + "}"}
	case place != "":
		return []string{"placement: " + place}
	}
	return nil
}

// crossing returns the options of an edge between nodes.
func (r row) crossing(from, to string) (options []string) {
	if to == "sink" && r["sink.place"] == "every-node" {
		options = append(options, "route: broadcast")
	}
	if r["delivery"] != "default" {
		options = append(options, "delivery: "+r["delivery"])
	}
	return options
}

// constructNode writes a function that makes the topology of a node. The instances of processors
// that are on every node get different indices on each node.
func (r row) constructNode(b *strings.Builder) {
	b.WriteString("func construct(node int, opts ...pool.Option) (pairs.Topology, pairs.Outside, error) {\n\tt, err := New(Processors{\n")
	for _, name := range []string{"feed", "work", "sink", "morgue"} {
		config, typ := "", strings.ToUpper(name[:1])+name[1:]
		if name == "sink" {
			config = ", pairs.Config{}"
		}
		if r[name+".place"] == "every-node" && len(r.placement(name)) > 0 || name == "morgue" && r["letters"] == "yes" {
			fmt.Fprintf(b, "\t\t%s: func(in topo.Instance) (*%[1]s, error) { return New%[1]s(pairs.OnNode(node, in)%s) },\n", typ, config)
		}
	}
	b.WriteString("\t}, opts...)\n")
}

// TestClusterRefusals checks that topogen refuses the combinations in clusterRefusals.
func TestClusterRefusals(t *testing.T) {
	for _, x := range clusterRefusals {
		for _, r := range x.rows(severalNodes.base()) {
			if strings.HasPrefix(x.code, "TG3") { // the finding is about Go code
				r.refusedWithCode(t, x.code)
			} else if codes := r.refusedBy(); !slices.Contains(codes, x.code) {
				t.Errorf("%v gives %q, want %q", x.when, codes, x.code)
			}
		}
	}
}

// TestClusterPairs checks that topogen accepts all other pairs, in the topologies of the array.
func TestClusterPairs(t *testing.T) {
	rows := severalNodes.coveringArray(t, 1)
	for _, r := range rows {
		if codes := r.refusedBy(); len(codes) > 0 {
			t.Errorf("%s refuses %v\n%s", codes, r, r.yaml("pairs"))
		}
	}
	t.Logf("%d topologies have all pairs", len(rows))
}

// TestGeneratedClusters is TestGenerated for topologies on several nodes.
func TestGeneratedClusters(t *testing.T) {
	speed.Landing(t)
	rerun.WhenCodeChanges(t, "generated_test/pairs")
	checkArrays(t, severalNodes, clusterRowsMax)
}
