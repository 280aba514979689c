package table

import (
	"maps"
	"slices"
	"sync/atomic"
)

// cells are the places of the containers of a processor, one word for each. The upper 16
// bits are the slot of the node, 0 for none, and the lower 48 bits are the epoch of the placement, see Node.epochOf.
type cells struct {
	name   string
	places []atomic.Uint64
}

// makeCells returns cells without places.
func makeCells(n int) []atomic.Uint64 { return make([]atomic.Uint64, n) }

func packCell(slot int, epoch uint64) uint64 { return uint64(slot)<<48 | epoch }

func unpackCell(c uint64) (slot int, epoch uint64) { return int(c >> 48), c & epochMax }

// layout is everything of a state except the words in cells and the leases. It never
// changes, so that readers need no lock. A change of the nodes or processors publishes a
// new one.
type layout struct {
	plan       Plan
	generation uint64 // grows with each Define: the numbers of processors may differ
	processors []*cells
	byName     map[string]int
	nodes      []*Node        // by slot-1; nil: the slot is free
	slots      map[string]int // by name of the node
	ordered    []*Node        // by name; the same slice until the nodes change
	end        *End           // never changes; nil: none
}

// withNodes returns a copy of the layout with other nodes. A node without a slot gets a
// free one. Forgotten nodes are removed; no cell may contain their slots, and changed must
// not add nodes at the same time, which could get these slots.
func (l *layout) withNodes(changed map[string]*Node) *layout {
	next := *l
	next.nodes, next.slots = slices.Clone(l.nodes), maps.Clone(l.slots)
	if next.slots == nil {
		next.slots = map[string]int{}
	}
	free := 0
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		n, slot := changed[name], next.slots[name]
		if n.State == Forgotten {
			if slot != 0 {
				next.nodes[slot-1] = nil
				delete(next.slots, name)
			}
			continue
		}
		if slot == 0 {
			for free < len(next.nodes) && next.nodes[free] != nil {
				free++
			}
			if free == len(next.nodes) {
				next.nodes = append(next.nodes, nil)
			}
			slot = free + 1
			next.slots[name] = slot
		}
		next.nodes[slot-1] = n
	}
	next.order()
	return &next
}

// order fills ordered. It is called once for each change of the nodes, because nodes are
// listed much more often than they change.
func (l *layout) order() {
	l.ordered = make([]*Node, 0, len(l.slots))
	for _, name := range slices.Sorted(maps.Keys(l.slots)) {
		l.ordered = append(l.ordered, l.nodes[l.slots[name]-1])
	}
}

// withProcessors returns a copy of the layout with another plan and other processors. The
// containers that remain keep their words. floor is the epoch of new
// containers, which is not above that of their first place.
func (l *layout) withProcessors(d *Define, floor uint64) *layout {
	next := *l
	next.plan, next.generation = Plan{d.Plan, d.Description}, l.generation+1
	if d.Plan != l.plan.Hash {
		next.end = nil // its groups are those of another topology
	}
	next.processors, next.byName = make([]*cells, len(d.Processors)), make(map[string]int, len(d.Processors))
	for i, p := range d.Processors {
		next.byName[p.Name] = i
		var old []atomic.Uint64
		if at, known := l.byName[p.Name]; known {
			old = l.processors[at].places
			if len(old) == p.Instances {
				next.processors[i] = l.processors[at]
				continue
			}
		}
		c := &cells{name: p.Name, places: make([]atomic.Uint64, p.Instances)}
		for j := range c.places {
			if j < len(old) {
				c.places[j].Store(old[j].Load())
			} else {
				c.places[j].Store(packCell(0, floor))
			}
		}
		next.processors[i] = c
	}
	return &next
}

// node returns the node in a slot, or nil.
func (l *layout) node(slot int) *Node {
	if slot == 0 || slot > len(l.nodes) {
		return nil
	}
	return l.nodes[slot-1]
}

// named returns the node with a name, or nil.
func (l *layout) named(name string) *Node { return l.node(l.slots[name]) }

// sorted returns the nodes in the order of their names. The caller must not change the list.
func (l *layout) sorted() []*Node { return l.ordered }
