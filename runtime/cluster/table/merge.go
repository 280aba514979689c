package table

// Merge adds the content of another state, for an engine without a total order. s must have a plan if o has one. Of two
// places of a container, the place with the higher epoch wins. If two different places
// have the same epoch, the place in s wins and its epoch grows, so that the other node
// sees a change. Of two processes of a node, the one with the higher epoch wins: it has joined last.
// Of what both know about the end, the later phases win. Otherwise the nodes, leases and the plan of s remain. The revision becomes r.
func (s *State) Merge(o *State, r Revision) {
	s.revision, s.epoch, s.token = r, max(s.epoch, o.epoch), max(s.token, o.token)
	l, from := s.layout.Load(), o.layout.Load()
	changed := s.missingNodes(l, from)
	for _, n := range from.nodes {
		if n == nil || n.Boot == 0 || n.Plan != l.plan.Hash || l.slots[n.Name] == 0 {
			continue
		}
		slot := l.slots[n.Name]
		if n.Epoch > l.node(slot).Epoch && (n.State < Left || s.counts[slot] == 0) {
			changed[n.Name] = n
		}
	}
	if len(changed) > 0 {
		l = l.withNodes(changed)
	}
	if end := mergeEnds(l, from); end != l.end {
		next := *l
		next.end = end
		l = &next
	}
	s.layout.Store(l)
	if n := len(l.nodes) + 1; n > len(s.counts) {
		s.counts = append(s.counts, make([]int, n-len(s.counts))...)
	}
	for _, c := range from.processors {
		if at, known := l.byName[c.name]; known {
			s.mergeCells(l, l.processors[at], from, c)
		}
	}
}

// missingNodes returns the nodes that s lacks, and that have containers with a higher epoch
// in the other state. Other nodes are not added: s may have forgotten them.
func (s *State) missingNodes(l, from *layout) map[string]*Node {
	missing := map[string]*Node{}
	for _, c := range from.processors {
		at, known := l.byName[c.name]
		if !known {
			continue
		}
		to := l.processors[at]
		for i := range min(len(to.places), len(c.places)) {
			at, epoch := unpackCell(to.places[i].Load())
			slot, other := unpackCell(c.places[i].Load())
			n := from.node(slot)
			epoch, other = l.node(at).epochOf(epoch), n.epochOf(other)
			if other > epoch && n != nil && l.slots[n.Name] == 0 && len(l.slots)+len(missing) < NodesMax {
				missing[n.Name] = n
			}
		}
	}
	return missing
}

// mergeCells merges the places of a processor.
func (s *State) mergeCells(l *layout, to *cells, from *layout, c *cells) {
	next := s.nextEpoch()
	for i := range min(len(to.places), len(c.places)) {
		slot, epoch := unpackCell(to.places[i].Load())
		epoch = l.node(slot).epochOf(epoch)
		otherSlot, otherEpoch := unpackCell(c.places[i].Load())
		name := ""
		if n := from.node(otherSlot); n != nil {
			name, otherEpoch = n.Name, n.epochOf(otherEpoch)
		}
		other := l.slots[name]
		switch {
		case otherEpoch > epoch && other != 0:
			s.counts[slot]--
			s.counts[other]++
			to.places[i].Store(packCell(other, otherEpoch))
		case otherEpoch >= epoch && other != slot:
			s.epoch = next
			to.places[i].Store(packCell(slot, next))
		}
	}
}

// Moves calls f for each container that a command would move if its guards held, in the
// order of the command, at most limit times.
func (s *State) Moves(c *Command, limit int, f func(processor string, instance int, from, to string)) {
	l := s.layout.Load()
	for _, change := range c.Changes {
		a, ok := change.(Assign)
		at, known := l.byName[a.Processor]
		if !ok || !known || a.First < 0 {
			continue
		}
		places := l.processors[at].places
		for i := a.First; i < min(a.First+a.Count, len(places)) && limit > 0; i++ {
			from := ""
			slot, _ := unpackCell(places[i].Load())
			if n := l.node(slot); n != nil {
				from = n.Name
			}
			f(a.Processor, i, from, a.Node)
			limit--
		}
	}
}
