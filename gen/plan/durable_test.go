package plan

import (
	"testing"

	"github.com/topogen/topogen/spec"
)

// TestDurableEdgesWithoutStore: an invalid section durable, or none, does not prevent a plan of the
// other parts.
func TestDurableEdgesWithoutStore(t *testing.T) {
	for section, want := range map[string]bool{"": false, "durable:\n": false, "durable: [1]\n": false, "durable: {store: 7}\n": true, "durable: {store: ./promises}\n": true} {
		topology, _ := spec.Parse("topology.yml", []byte("version: 1\nname: shop\n"+section+`
processors: {api: {external: true}, orders: {blocking: true}}
edges:
  - api -> orders: {message: A, durable: true}
`))
		p, _ := Outline(topology, Package{Name: "shop", Path: "example.com/shop"})
		if got := p.Durable != nil; got != want {
			t.Errorf("%q: the plan has a store: %v, want %v", section, got, want)
		}
	}
}
