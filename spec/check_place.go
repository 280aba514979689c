package spec

import (
	"fmt"

	"github.com/topogen/topogen/spec/finding"
)

// checkPlacements reports unknown nodes, and processors that must be on the same nodes and are
// not: receivers of dead letters, members of restart groups, state machines and their controllers.
func (b *builder) checkPlacements() {
	t := b.topology
	for i := range t.Processors {
		p := &t.Processors[i]
		if p.Placement.Given && p.Placement.Kind == OnNode && p.Machine == nil && !b.found.exact[p.Placement.Node.Pointer] {
			b.checkNode(p.Placement.Node)
		}
		b.checkDeadLetterPlace(i)
		if b.isMachine(i) {
			b.checkMachinePlace(p)
		}
	}
	for i := range t.Groups {
		b.checkGroupPlace(&t.Groups[i])
	}
	for i := range t.Edges {
		b.checkEventPlace(&t.Edges[i])
	}
}

// place describes the placement of a processor.
func (p *Processor) place() string {
	switch {
	case p.External:
		return "is external"
	case p.Placement.Kind == OnNode:
		return "has the placement {node: " + clip(p.Placement.Node.Value) + "}"
	}
	return "has the placement " + string(p.Placement.Kind)
}

// beside says how to place a processor on the nodes of another one.
func (p *Processor) beside(other *Processor) string {
	if p.Placement.Kind == OnNode {
		return fmt.Sprintf("write \"placement: {node: %s}\" for %s", clip(p.Placement.Node.Value), quoted(other.Name.Value))
	}
	return fmt.Sprintf("write \"placement: every-node\" for %s", quoted(other.Name.Value))
}

// checkDeadLetterPlace reports dead letters that would leave their node.
func (b *builder) checkDeadLetterPlace(from int) {
	t := b.topology
	p := &t.Processors[from]
	to := p.OnError.DeadLetterTo
	if !t.DeadLettersCross(from) || b.found.exact[p.OnError.DeadLetter.Pointer] || t.Processors[to].External || b.misplaced(from) || b.misplaced(to) {
		return
	}
	name, target := p.OnError.DeadLetter, &t.Processors[to]
	b.found.addText(finding.DeadLetter, name, fmt.Sprintf("dead letters must stay on their node, because they hold messages of any type, but %s %s and %s %s", quoted(p.Name.Value), p.place(), quoted(target.Name.Value), target.place()), p.beside(target))
}

// checkGroupPlace reports a restart group whose members are restarted together and are not on
// the same nodes.
func (b *builder) checkGroupPlace(g *Group) {
	if g.Strategy == OneForOne || len(g.Processors) == 0 || b.found.broken[g.Pointer] {
		return
	}
	first := &b.topology.Processors[g.Processors[0]]
	for _, i := range g.Processors {
		p := &b.topology.Processors[i]
		if b.misplaced(i) || b.misplaced(g.Processors[0]) {
			return
		}
		spread := p.Placement.Kind == Spread && p.Instances > 1
		if !spread && b.topology.sameNodes(g.Processors[0], i) {
			continue
		}
		message := fmt.Sprintf("the members of a group with %s must be on the same nodes, but %s %s and %s %s", g.Strategy, quoted(first.Name.Value), first.place(), quoted(p.Name.Value), p.place())
		if spread {
			message = fmt.Sprintf("the instances of a group with %s must be on the same nodes, but %s has %d instances with the placement spread", g.Strategy, quoted(p.Name.Value), p.Instances)
		}
		b.found.addText(finding.Member, g.Name, message, `write "placement: every-node" or the same "placement: {node: NAME}" for all members, or "strategy: one-for-one"`)
		return
	}
}

// checkMachinePlace reports a state machine whose controller is not always on its node, and one
// whose peers are not the nodes of the cluster.
func (b *builder) checkMachinePlace(p *Processor) {
	m := p.Machine
	name := quoted(p.Name.Value)
	if m.Replicated() {
		b.checkNodesOfPeers(p)
	}
	if m.Controller.Pointer == "" {
		if !m.Replicated() && !b.found.broken[p.Pointer] {
			b.found.addText(finding.Controller, p.Name, "in a cluster, a state machine without raft must have a controller that determines its node, and "+name+" has none", "add raft, or a controller with \"placement: {node: NAME}\"")
		}
		return
	}
	if m.ControllerTo < 0 || b.found.exact[m.Controller.Pointer] || b.misplaced(m.ControllerTo) {
		return
	}
	c := &b.topology.Processors[m.ControllerTo]
	switch {
	case m.Replicated() && c.Placement.Kind != EveryNode:
		b.found.addText(finding.Controller, m.Controller, fmt.Sprintf("the controller of a replicated state machine must be on every node, as %s is, but %s %s", name, quoted(c.Name.Value), c.place()), fmt.Sprintf("write \"placement: every-node\" for %s", quoted(c.Name.Value)))
	case !m.Replicated() && c.Placement.Kind != OnNode:
		b.found.addText(finding.Controller, m.Controller, fmt.Sprintf("the controller of a state machine without raft must be on one node, because %s has one state, but %s %s", name, quoted(c.Name.Value), c.place()),
			fmt.Sprintf("write \"placement: {node: NAME}\" for %s, or add raft to %s", quoted(c.Name.Value), name))
	}
}

// checkNodesOfPeers reports peers that are not the nodes of the cluster. Each program gets one
// name, which is the name of its node in the cluster and in each group.
func (b *builder) checkNodesOfPeers(p *Processor) {
	c, r := b.topology.Cluster, p.Machine.Raft
	if b.found.broken[c.Pointer+"/nodes"] || b.found.broken[r.Pointer+"/peers"] || len(r.Peers) == 0 {
		return
	}
	peers := map[string]bool{}
	for _, peer := range r.Peers {
		peers[peer.Name.Value] = true
		if !b.nodeNames[peer.Name.Value] {
			b.checkNode(Text{Value: peer.Name.Value, At: peer.Name.At, Pointer: peer.Address.Pointer})
			return
		}
		if node, ok := b.nodeAddresses[peer.Address.Value]; ok && !r.ByController {
			b.found.addText(finding.Peers, peer.Address, fmt.Sprintf("a peer must have another address than the nodes of the cluster, but node %s has %s too", quoted(node), quoted(peer.Address.Value)), "write another port")
		}
	}
	for _, node := range c.Nodes {
		if !peers[node.Name.Value] {
			b.found.add(finding.Peers, r.Peers[0].Name.At, r.Pointer+"/peers", fmt.Sprintf("the peers of %s must be the nodes of the cluster, and %s is missing", quoted(p.Name.Value), quoted(node.Name.Value)), "add it with an address of its own")
			return
		}
	}
}

// checkEventPlace reports an edge of the file from a state machine that may lead to another
// node.
func (b *builder) checkEventPlace(e *Edge) {
	if e.Implied || !b.isMachine(e.From) || e.To < 0 || b.found.broken[e.Pointer] || b.misplaced(e.To) || !b.topology.Crosses(e) {
		return
	}
	p, to := &b.topology.Processors[e.From], &b.topology.Processors[e.To]
	if m := p.Machine; m.ControllerTo >= 0 && b.found.exact[m.Controller.Pointer] || p.Placement.Kind == Spread {
		return // its placement has a finding
	}
	suggestion := p.beside(to)
	if p.Placement.Kind == EveryNode {
		suggestion += `, and "route: local" on the edge`
	}
	b.found.add(finding.MachineEdge, e.ToText.At, e.Pointer, fmt.Sprintf("an edge from %s of kind %s must stay on its node, and %s %s", quoted(p.Name.Value), p.Machine.Kind, quoted(to.Name.Value), to.place()), suggestion)
}

// checkNodeRoute reports an edge whose route does not suit the nodes of its receiver. It returns
// false if the route must be checked as in one process.
func (b *builder) checkNodeRoute(i int, e *Edge) bool {
	to, r := &b.topology.Processors[e.To], &e.Route
	external := e.From >= 0 && b.topology.Processors[e.From].External
	everyNode := to.Placement.Kind == EveryNode
	name := quoted(to.Name.Value)
	if b.misplaced(e.To) && b.section != nil {
		return true
	}
	otherPlace := "another placement for " + name
	if !to.Placement.Given && to.Machine == nil {
		otherPlace = "let another processor handle it: " + name + " is on every node because of its durable edges"
	}
	switch {
	case r.Kind == RouteCaller:
		b.reserved(Text{At: r.At, Pointer: r.Pointer}, `"route: caller" is`, "write another route, or return a reply")
	case e.Every > 0:
		return false
	case r.Kind == RouteNode && b.section == nil:
		b.noCluster(Text{At: r.At, Pointer: r.Pointer}, "the route node")
	case e.Durable: // any node continues the execution, and checkDurableEdge reports other routes
		return r.Kind == RouteNode
	case everyNode && r.Kind == RouteNone && r.Pointer == "":
		b.found.add(finding.NoRoute, e.ToText.At, e.Pointer, fmt.Sprintf("an edge to a processor on every node must have a route, and %s has the placement every-node", name),
			b.routeSuggestion(i, e)+" for the node of the sender, broadcast or {node: FIELD}")
	case everyNode && (r.Kind == RouteKey || r.Kind == RouteID || r.Kind == RouteRange):
		b.found.add(finding.RouteUnfit, r.At, r.Pointer, fmt.Sprintf("an edge to a processor on every node must have the route local, broadcast or node, got %s", r.Kind), "write one of them, or "+otherPlace)
	case r.Kind == RouteNode && !everyNode:
		b.found.add(finding.RouteUnfit, r.At, r.Pointer, fmt.Sprintf("the route node must lead to a processor with the placement every-node, and %s %s", name, to.place()), "write \"placement: every-node\" for "+name+", or another route")
	case external && everyNode && (r.Kind == RouteLocal || r.Kind == RouteNode) && to.Instances > 1:
		b.found.add(finding.RouteUnfit, r.At, r.Pointer, fmt.Sprintf("an edge from an external processor with the route %s must lead to one instance on each node, and %s has %d", r.Kind, name, to.Instances), "write broadcast, or one instance")
	case external && everyNode && r.Kind == RouteLocal:
	default:
		return false
	}
	return true
}

// routeSuggestion says how to write the edge with the route local.
func (b *builder) routeSuggestion(i int, e *Edge) string {
	if v := b.options[i]; v == nil || v.Kind != Map { // the value is only the name of the message
		return fmt.Sprintf("write %q", "{message: "+clip(e.Message.Value)+", route: local}")
	}
	return `write "route: local"`
}
