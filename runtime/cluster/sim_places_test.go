package cluster

import (
	"fmt"
	"time"
)

// mistakenPlaces are the places of instances as a node with an old address table sees them.
type mistakenPlaces struct {
	*lookup
	wrong map[[2]int]string // by processor and instance
}

func (m *mistakenPlaces) Node(processor, instance int) (name string, ok bool) {
	if name, ok = m.wrong[[2]int{processor, instance}]; ok {
		return name, true
	}
	return m.lookup.Node(processor, instance)
}

// placesWrongMax is how long a node has an old address table at most.
const placesWrongMax = 5 * time.Second

// places returns where the node looks for instances of other nodes. It learns the truth about
// one after another.
func (n *simNode) places() places {
	s := n.sim
	if s.wrong != nil {
		return &mistakenPlaces{n.where, s.wrong(n)}
	}
	if s.misplaced == 0 || s.design.nodes < 3 {
		return n.where
	}
	m := &mistakenPlaces{n.where, map[[2]int]string{}}
	for of, p := range s.design.parts {
		for i := range p.instances {
			where, ok := n.where.Node(of, i)
			if !ok || where == n.name || p.everyNode() || s.random.Float64() >= s.misplaced {
				continue
			}
			wrong := nodeName(s.random.IntN(s.design.nodes))
			if wrong == n.name || wrong == where {
				continue
			}
			at := [2]int{of, i}
			m.wrong[at] = wrong
			s.counts["instances looked for on another node"]++
			s.at(s.now+time.Duration(s.random.Int64N(int64(placesWrongMax))), fmt.Sprintf("%s learns where %s/%d is", n.name, p.name, i), func() {
				delete(m.wrong, at)
				if s.random.IntN(2) == 0 { // otherwise it looks again when its attempt is due
					n.post(func(h *happened) { h.members = true })
				}
			})
		}
	}
	return m
}
