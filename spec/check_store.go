package spec

import (
	"fmt"
	"path"

	"github.com/topogen/topogen/spec/finding"
)

// storeSuffix is added to the name of the group and the path of the log of a processor. They
// are then those of the store that its nodes keep.
const storeSuffix = "-promises"

// checkStoreNodes finds the processor on whose nodes the store is replicated, and reports one
// that has no nodes, or whose store would share a folder or a group with another processor.
func (b *builder) checkStoreNodes(d *Durable) {
	if d.Raft.Pointer == "" || b.found.exact[d.Raft.Pointer] {
		return
	}
	var candidates []string
	for _, p := range b.topology.Processors {
		if p.Machine != nil && p.Machine.Raft != nil && !p.Machine.Raft.ByController {
			candidates = append(candidates, p.Name.Value)
		}
	}
	suggestion := `name a folder, such as "store: ./promises", or add a processor of kind fsm with log and raft`
	if len(candidates) > 0 {
		suggestion = "write " + candidates[0]
	}
	d.RaftTo = max(-1, b.reference(d.Raft, d.Raft.Pointer, candidates, suggestion))
	if d.RaftTo < 0 {
		return
	}
	p := &b.topology.Processors[d.RaftTo]
	m := p.Machine
	if b.found.broken[p.Pointer] {
		return
	}
	what := ""
	switch {
	case m == nil || m.Kind == "":
		what = "is not of kind fsm or raft"
	case m.Raft == nil:
		what = "has no raft"
	case m.Raft.ByController:
		what = "has no connections between its nodes: its controller carries the messages"
	default:
		b.checkStoreShares(d, p)
		return
	}
	b.found.addText(finding.StoreNodes, d.Raft, fmt.Sprintf("the store must be on the nodes of a processor with raft, and %s %s", quoted(p.Name.Value), what), suggestion)
}

// checkStoreShares reports a processor with the folder or the group of the store.
func (b *builder) checkStoreShares(d *Durable, nodes *Processor) {
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		m := p.Machine
		if m == nil || p == nodes {
			continue
		}
		if m.Raft != nil && m.Raft.Group.Value == nodes.Machine.Raft.Group.Value+storeSuffix {
			b.storeShares(d, p, "group", m.Raft.Group.Value)
		}
		if m.Log != nil && nodes.Machine.Log != nil && path.Clean(m.Log.Path.Value) == path.Clean(nodes.Machine.Log.Path.Value)+storeSuffix {
			b.storeShares(d, p, "folder", m.Log.Path.Value)
		}
	}
}

func (b *builder) storeShares(d *Durable, p *Processor, what, name string) {
	b.found.addText(finding.Shared, d.Raft, fmt.Sprintf("the store must have its own %s, but %s has %s too", what, quoted(p.Name.Value), quoted(name)), "give "+quoted(p.Name.Value)+" another one")
}
