package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topogen/topogen/spec/finding"
)

// TestCrosses checks for each edge whether its messages may go to another node. The names of the
// messages say what is expected.
func TestCrosses(t *testing.T) {
	topology := parseClean(t, `
version: 1
name: places
cluster: {nodes: {n1: "127.0.0.1:1", n2: "127.0.0.1:2", n3: "127.0.0.1:3"}}
processors:
  api: {external: true}
  a: {instances: 4}
  b: {instances: 4}
  c: {instances: 4}
  d: {instances: 3}
  one: {}
  two: {}
  three: {}
  disk: {placement: {node: n1}}
  disks: {placement: {node: n1}, instances: 4}
  tape: {placement: {node: n2}}
  probe: {placement: every-node}
  probes: {placement: every-node, instances: 4}
  ledger: {kind: fsm, state: S, update: U, controller: probes, log: {path: l}, raft: {peers: {n1: "127.0.0.1:11", n2: "127.0.0.1:12", n3: "127.0.0.1:13"}}}
  cache: {kind: fsm, state: S, update: U, controller: disk}
edges:
  - api -> a: {message: Crosses1, key: K}
  - api -> disk: Crosses2
  - api -> probe: {message: Stays1, route: local}
  - api -> probe: {message: Crosses3, route: broadcast}
  - api -> probe: {message: Crosses4, route: {node: K}}
  - a -> b: {message: Stays2, route: local}
  - b -> c: {message: Stays3, route: local}
  - c -> a: {message: Stays4, route: local}
  - a -> a: {message: Stays5, route: local}
  - a -> a: {message: Crosses5, key: K}
  - c -> a: {message: Crosses6, route: {id: K}}
  - a -> d: {message: Crosses7, route: local}
  - a -> d: {message: Crosses8, route: {range: {offset: 0, count: 1}}}
  - one -> one: Stays6
  - one -> two: {message: Stays7, route: local}
  - two -> one: Stays8
  - two -> three: Crosses9
  - one -> a: {message: Crosses10, route: local}
  - disk -> disks: {message: Stays9, key: K}
  - disks -> disk: Stays10
  - disks -> tape: Crosses11
  - disks -> a: {message: Crosses12, route: local}
  - a -> disks: {message: Crosses13, route: local}
  - a -> probes: {message: Stays11, route: local}
  - disk -> probes: {message: Stays12, route: local}
  - probe -> probes: {message: Stays13, route: local}
  - probes -> probe: {message: Crosses14, route: broadcast}
  - probe -> a: {message: Crosses15, route: local}
  - probe -> disk: Crosses16
  - ledger -> probes: {message: LedgerApplied, route: local}
  - cache -> disk: CacheApplied
  - every 1s -> a
  - every 1s -> probes
`)
	for i := range topology.Edges {
		e := &topology.Edges[i]
		if got, want := topology.Crosses(e), strings.HasPrefix(e.Message.Value, "Crosses"); got != want {
			t.Errorf("%s crosses: %t, want %t", e.title(), got, want)
		}
	}
	got := map[string]string{}
	for _, p := range topology.Processors {
		got[p.Name.Value] = fmt.Sprint(p.Placement.Kind, " ", p.Placement.Node.Value, " ", p.Placement.With)
	}
	want := map[string]string{
		"api": "every-node  0", "a": "spread  1", "b": "spread  1", "c": "spread  1", "d": "spread  4", "one": "spread  5", "two": "spread  5", "three": "spread  7",
		"disk": "node n1 8", "disks": "node n1 9", "tape": "node n2 10", "probe": "every-node  11", "probes": "every-node  12", "ledger": "every-node  13", "cache": "node n1 14",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNothingCrossesWithoutCluster checks that a topology without the section has no placements.
func TestNothingCrossesWithoutCluster(t *testing.T) {
	topology := parseClean(t, "version: 1\nname: alone\nprocessors: {a: {}, b: {instances: 2}}\nedges:\n  - a -> b: {message: M, route: broadcast}\n")
	if topology.Crosses(&topology.Edges[0]) || topology.Processors[0].Placement.Kind != Nowhere || topology.Edges[0].Delivery != "" {
		t.Error("there is a placement without a cluster")
	}
}

// TestPartialPlacements leaves out the first of several processors that are placed together.
func TestPartialPlacements(t *testing.T) {
	topology, _ := Parse("topology.yml", []byte(`
version: 1
name: partial
cluster: {nodes: {n1: "127.0.0.1:1"}}
processors: {a: {memory: 1MiB, instances: 2}, b: {instances: 2}, c: {instances: 2}, d: {instances: 2}}
edges:
  - a -> b: {message: M, route: local}
  - b -> c: {message: M, route: local}
  - a -> d: {message: M, route: local}
`))
	var got []int
	for _, p := range topology.Processors {
		got = append(got, p.Placement.With)
	}
	if want := []int{0, 0, 2}; !topology.Partial || !cmp.Equal(got, want) {
		t.Errorf("partial %t, placed with %v, want %v", topology.Partial, got, want)
	}
}

// TestModelOfCluster checks all settings of a cluster, and the defaults of times.
func TestModelOfCluster(t *testing.T) {
	got := parseClean(t, string(read(t, "testdata/parse/clean-cluster/input.yml"))).Cluster
	want := &Cluster{
		Nodes: []Peer{{text("n1"), text("10.0.0.1:7400")}, {text("n2"), text("10.0.0.2:7400")}, {text("n3"), text("10.0.0.3:7400")}},
		Dir:   text("./node"), TLS: &TLS{text("node.pem"), text("node.key"), text("ca.pem")}, TrustDomain: text("orders.example.com"),
		Addresses: AddressesEtcd,
		Etcd:      &Etcd{Endpoints: []Text{text("https://10.0.0.9:2379"), text("https://10.0.0.10:2379")}, Prefix: text("/orders"), TLS: &TLS{CA: text("etcd-ca.pem")}},
		Membership: Membership{Profile: "local", Detector: "memberlist", Interval: 500 * time.Millisecond, DirectTimeout: 200 * time.Millisecond,
			Helpers: 2, Suspicion: 3 * time.Second},
		Fence: FenceMajority, TieBreaker: text("n1"), Retry: Resend{Timeout: time.Minute, Min: 100 * time.Millisecond, Max: 5 * time.Second},
		Rebalance: RebalanceNone, Neighborhood: 16,
	}
	if diff := cmp.Diff(want, got, values, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Pointer" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	swim := parseClean(t, "version: 1\nname: swim\ncluster: {nodes: {n1: \"127.0.0.1:1\"}, membership: {indirect_timeout: 300ms}}\nprocessors: {a: {}}\nedges: []\n").Cluster.Membership
	if swim.IndirectTimeout != 300*time.Millisecond || swim.Helpers != -1 {
		t.Errorf("membership is %+v", swim)
	}
	for retry, want := range map[string]Resend{
		"{}":                         {30 * time.Second, 50 * time.Millisecond, 2 * time.Second},
		"{timeout: 1s}":              {time.Second, 50 * time.Millisecond, time.Second},
		"{timeout: 20ms}":            {20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond},
		"{min: 5s}":                  {30 * time.Second, 5 * time.Second, 5 * time.Second},
		"{max: 10ms}":                {30 * time.Second, 10 * time.Millisecond, 10 * time.Millisecond},
		"{min: 1s, timeout: 1500ms}": {1500 * time.Millisecond, time.Second, 1500 * time.Millisecond},
	} {
		topology := parseClean(t, "version: 1\nname: times\ncluster: {nodes: {n1: \"127.0.0.1:1\"}, retry: "+retry+"}\nprocessors: {a: {}}\nedges: []\n")
		if got := topology.Cluster.Retry; got != want {
			t.Errorf("%s becomes %v, want %v", retry, got, want)
		}
	}
}

// TestTableIsBounded checks that an address table has room for its processors. Processors that are
// placed together take the room of one.
func TestTableIsBounded(t *testing.T) {
	for _, c := range []struct {
		processors int
		options    string
		route      string
		fits       bool
	}{
		{placedMax, "", "broadcast", true},
		{placedMax + 1, "", "broadcast", false},
		{placedMax + 1, "", "local", true},
		{placedMax + 1, "placement: every-node", "broadcast", true},
	} {
		var src strings.Builder
		src.WriteString("version: 1\nname: wide\ncluster: {nodes: {n1: \"127.0.0.1:1\"}}\nprocessors:\n")
		for i := range c.processors {
			fmt.Fprintf(&src, "  p%d: {%s}\n", i, c.options)
		}
		src.WriteString("edges:\n")
		for i := range c.processors - 1 {
			fmt.Fprintf(&src, "  - p%d -> p%d: {message: M, route: %s}\n", i, i+1, c.route)
		}
		_, findings := Parse("topology.yml", []byte(src.String()))
		if fits := !finding.HasErrors(findings); fits != c.fits {
			t.Errorf("%d processors with %q and the route %s: fits %t, findings %v", c.processors, c.options, c.route, fits, findings)
		}
	}
}
