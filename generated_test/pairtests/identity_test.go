package pairtests_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec"
)

// The rows of the table in docs/reference/nodes.md, by their first words.
const (
	newCluster    = "a new cluster"
	allTogether   = "all nodes together"
	oneAfterOther = "one node after the other"
)

// unchanged are keys of the rows "a new cluster" and "all nodes together" that no variant of a golden
// case shows, with the reason.
var unchanged = map[string]string{
	"topology.messages":             "names a Go type: gen/wire TestSample and cmd/topogen identity.txtar",
	"topology.cluster.trust_domain": "is in certificates: nodes with another one refuse each other",
	"placement.role":                "reserved: topogen reports it",
	"processor.kind":                noMachine,
	"processor.key":                 noMachine,
	"processor.route":               noMachine,
	"topology.durable":              ownStore,
	"topology.durable.store":        ownStore,
	"store.raft":                    ownStore,
}

const (
	noMachine = "no golden case has this key of a state machine in a cluster"
	ownStore  = "nodes do not compare their stores"
)

// classes reads the table.
func classes(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## What identifies a cluster\n")
	if !found {
		t.Fatal("nodes.md has no section What identifies a cluster")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	of := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, key := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(cells[2], -1) {
			if of[key[1]] != "" {
				t.Errorf("the table has %s twice", key[1])
			}
			of[key[1]] = strings.TrimSpace(strings.Trim(strings.TrimSpace(cells[1]), "*"))
		}
	}
	return of
}

// identity is what a topology with a cluster has in common on all nodes.
func identity(topology *spec.Topology) (lines, together string) {
	p, _ := plan.Outline(topology, plan.Package{Name: "p", Path: "p"})
	return strings.Join(p.Identity(nil), "\n"), p.Cluster.Together()
}

// schemaKeys lists all keys of the schema, also the keys in elsewhere.
func schemaKeys(t *testing.T) (schema map[string]any, declared keys) {
	t.Helper()
	if err := json.Unmarshal(schemas.Topology, &schema); err != nil {
		t.Fatal(err)
	}
	declared = make(keys)
	declared.all(schema, schema, "topology")
	for name, part := range mapping(schema["$defs"]) {
		declared.all(schema, part, name)
	}
	maps.DeleteFunc(declared, func(key string, _ bool) bool { return strings.Contains(key, "=") })
	return schema, declared
}

// TestEveryKeyIsPartOfTheIdentityOrNot compares the table in docs/reference/nodes.md with the schema.
func TestEveryKeyIsPartOfTheIdentityOrNot(t *testing.T) {
	_, declared := schemaKeys(t)
	of := classes(t)
	for _, key := range slices.Sorted(maps.Keys(declared)) {
		if of[key] == "" {
			t.Errorf("the table in nodes.md does not have %s: decide whether nodes with other values can work together", key)
		}
	}
	for key, class := range of {
		if !declared[key] || !slices.Contains([]string{newCluster, allTogether, oneAfterOther}, class) {
			t.Errorf("the table in nodes.md has %s in the row %q: the schema does not have the key, or the row is unknown", key, class)
		}
	}
}

// identityPlaces is in how many places a change of a key is tried.
const identityPlaces = 4

// TestIdentityOfChangedTopologies changes the value of each key in golden cases with a cluster, and compares
// what changes with the table in docs/reference/nodes.md.
func TestIdentityOfChangedTopologies(t *testing.T) {
	speed.Landing(t)
	schema, _ := schemaKeys(t)
	of := classes(t)
	shown, tried := map[string]bool{}, map[string]int{}
	cases := slices.DeleteFunc(readGolden(t), func(g *golden) bool { return g.topology.Cluster == nil })
	for _, missing := range []bool{false, true} {
		for _, g := range cases {
			lines, together := identity(g.topology)
			g.find(schema, schema, "topology", g.document.Content[0], func(key string, p keyPlace) {
				if tried[key] == identityPlaces || shown[key] || p.missing() != missing || key == "topology.cluster" {
					return
				}
				found, _, fits := g.variants(p)
				if fits {
					tried[key]++
				}
				for _, v := range found {
					nowLines, nowTogether := identity(v.topology)
					switch class := of[key]; {
					case nowLines != lines && class != newCluster:
						t.Errorf("%v: %s changes the identity of the cluster, and is in the row %q", v, key, class)
					case nowTogether != together && class != allTogether:
						t.Errorf("%v: %s changes what running nodes must have in common, and is in the row %q", v, key, class)
					case nowLines != lines || nowTogether != together:
						shown[key] = true
					}
				}
			})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if of[key] != newCluster && of[key] != allTogether {
			continue
		}
		switch _, excused := unchanged[key]; {
		case excused && shown[key]:
			t.Errorf("a golden case shows %s: remove it from unchanged", key)
		case !excused && !shown[key]:
			t.Errorf("%s is in the row %q, and no golden case with a cluster shows that it changes something", key, of[key])
		}
	}
}
