package spec

// place completes the placement of each processor. It does nothing without a cluster.
//
// Two processors with placement spread and the same number of instances are placed together if
// an edge with the route local joins them: instance i of both is always on the same node. So
// the messages of such an edge never leave their node.
func (t *Topology) place() {
	if t.Cluster == nil {
		return
	}
	continues := make([]bool, len(t.Processors)) // executions that any node may continue
	for _, e := range t.Edges {
		if e.Durable && e.To >= 0 {
			continues[e.To] = true
		}
	}
	for i := range t.Processors {
		p := &t.Processors[i]
		p.Placement.With = i
		switch {
		case p.External:
			p.Placement.Kind = EveryNode
		case p.Machine != nil:
			t.placeMachine(p)
		case p.Placement.Kind == Nowhere && continues[i]:
			p.Placement.Kind = EveryNode
		case p.Placement.Kind == Nowhere:
			p.Placement.Kind = Spread
		}
	}
	for _, e := range t.Edges {
		if e.From < 0 || e.To < 0 || e.Route.Kind != RouteLocal {
			continue
		}
		from, to := &t.Processors[e.From], &t.Processors[e.To]
		if from.Placement.Kind != Spread || to.Placement.Kind != Spread || from.Instances != to.Instances {
			continue
		}
		a, b := t.first(e.From), t.first(e.To)
		t.Processors[max(a, b)].Placement.With = min(a, b)
	}
	for i := range t.Processors {
		t.Processors[i].Placement.With = t.first(i)
	}
}

// placeMachine places a processor of kind fsm or raft. A replicated one has a replica on each
// node. Another one has one state, next to its controller.
func (t *Topology) placeMachine(p *Processor) {
	p.Placement.Kind = EveryNode
	if c := p.Machine.ControllerTo; !p.Machine.Replicated() && c >= 0 {
		of := t.Processors[c].Placement
		p.Placement.Kind, p.Placement.Node = of.Kind, of.Node
		if of.Kind == Nowhere {
			p.Placement.Kind = Spread
		}
	}
}

// first returns the first processor that is placed together with a processor. It shortens the path to it.
func (t *Topology) first(i int) int {
	for {
		with := t.Processors[i].Placement.With
		if with == i {
			return i
		}
		t.Processors[i].Placement.With = t.Processors[with].Placement.With
		i = with
	}
}

// Crosses reports whether messages of an edge may go to another node.
func (t *Topology) Crosses(e *Edge) bool {
	switch {
	case t.Cluster == nil || e.From < 0 || e.To < 0 || e.Durable: // the node of an instance makes its ticks, and a store has the messages of durable edges
		return false
	case e.Implied: // a state machine is on each node of its controller
		return !t.sameNodes(e.From, e.To)
	}
	return t.crosses(e.From, e.To, e.Route.Kind)
}

func (t *Topology) crosses(from, to int, route RouteKind) bool {
	p, q := &t.Processors[from], &t.Processors[to]
	switch {
	case q.Placement.Kind == EveryNode:
		return route != RouteLocal
	case p.Placement.Kind == Spread && t.sameNodes(from, to):
		return route != RouteLocal && q.Instances > 1
	}
	return !t.sameNodes(from, to)
}

// sameNodes reports whether the instances of two processors are on the same nodes. With
// placement spread this holds for instances with the same index.
func (t *Topology) sameNodes(a, b int) bool {
	p, q := &t.Processors[a].Placement, &t.Processors[b].Placement
	switch {
	case p.Kind != q.Kind:
		return false
	case p.Kind == OnNode:
		return p.Node.Value == q.Node.Value
	case p.Kind == Spread:
		return p.With == q.With
	}
	return true
}

// DeadLettersCross reports whether dead letters of a processor may go to another node. They
// hold messages of any type and cannot be encoded.
func (t *Topology) DeadLettersCross(processor int) bool {
	to := t.Processors[processor].OnError.DeadLetterTo
	return t.Cluster != nil && to >= 0 && t.crosses(processor, to, RouteLocal)
}
