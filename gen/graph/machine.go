package graph

import (
	"fmt"
	"slices"

	"github.com/topogen/topogen/spec"
)

// Machine has the settings of a state machine.
type Machine struct {
	Kind  string `json:"kind"`  // "fsm", "raft"
	Log   string `json:"log"`   // the folder; empty: in memory
	Sync  string `json:"sync"`  // sync setting of the log
	Group string `json:"group"` // name of the raft group; empty: a single node
	Peers int    `json:"peers"`
}

// ofMachine makes n the node of a state machine.
func (n *Node) ofMachine(p spec.Processor) {
	m := &Machine{Kind: string(p.Machine.Kind)}
	n.Type, n.Blocking = "", false // true for all state machines, so not shown
	if p.Machine.Kind == spec.FSM {
		n.Type = p.Machine.State.Value + ", " + p.Machine.Update.Value
	}
	if l := p.Machine.Log; l != nil {
		m.Log, m.Sync = l.Path.Value, string(l.Sync)
	}
	if r := p.Machine.Raft; r != nil {
		m.Group, m.Peers = r.Group.Value, len(r.Peers)
	}
	n.Machine = m
}

// words are the badges of a state machine: fsm, log, raft ×3.
func (m *Machine) words() []string {
	if m == nil {
		return nil
	}
	var words []string
	if m.Kind == string(spec.FSM) {
		words = append(words, m.Kind)
	}
	if m.Log != "" {
		words = append(words, "log")
	}
	if m.Group != "" {
		words = append(words, fmt.Sprintf("raft ×%d", m.Peers))
	}
	return words
}

// isAside reports whether pictures omit an edge of a state machine. They show its proposals
// and outcomes, or else the first edge in each direction.
func isAside(t *spec.Topology, e spec.Edge) bool {
	first := slices.IndexFunc(t.Edges, func(other spec.Edge) bool { return other.Implied && other.From == e.From && other.To == e.To })
	return t.Edges[first].Message.Value != e.Message.Value
}

// capHigh is the height of the curves of a state machine's box.
const capHigh = 5

// cylinder draws the box of a state machine.
func (c *canvas) cylinder(r rect) {
	c.printf(`<path class="box" d="M%d %da%d %d 0 0 1 %d 0v%da%d %d 0 0 1 %d 0z"/>`,
		r.x, r.y+capHigh, r.w/2, capHigh, r.w, r.h-2*capHigh, r.w/2, capHigh, -r.w)
	c.printf(`<path class="rim" d="M%d %da%d %d 0 0 0 %d 0"/>`, r.x, r.y+capHigh, r.w/2, capHigh, r.w)
}

// machineStyle is the additional style for state machines.
const machineStyle = `.topogen .machine .box{fill:#eef0fb;stroke:#5b5fb0}
.topogen .rim{fill:none;stroke:#5b5fb0;stroke-width:1.1}
.topogen .badge.kept{fill:#dcdcf7}
.topogen .badge-text.kept{fill:#3a3d8f}
@media (prefers-color-scheme:dark){
.topogen .machine .box{fill:#1e2040;stroke:#8084d8}
.topogen .rim{stroke:#8084d8}
.topogen .badge.kept{fill:#34376e}
.topogen .badge-text.kept{fill:#cfd1ff}
}
`

func (g Graph) machines() bool {
	return slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Machine != nil })
}
