package pool

// successor is the Inlet of a link that takes the place of one whose sender was
// abandoned: what is left there was sent before, and comes first.
type successor struct {
	inlet  Inlet // the link's own
	link   *Link
	before *Link
}

// predecessor is the link that leads from the same instance to the same one, if
// its sender was abandoned.
func (l *Link) predecessor() *Link {
	if l.out == nil {
		return nil
	}
	w := l.out.unit.watch()
	if w == nil || !w.equipped {
		return nil
	}
	for before := l.to.inlinks.Load(); before != nil; before = before.nextIn {
		if before.out != nil && before.out.unit == l.out.unit {
			return before
		}
	}
	return nil
}

// Drain hands over what is left in the link before. Nothing is added there, so
// when that is nothing it is left alone from then on.
func (s *successor) Drain(budget int) (n int, err error) {
	n, err = s.before.inlet.Drain(budget)
	if n > 0 || err != nil || s.link.to.Hold() {
		s.link.edge = s.before.edge
		return n, err
	}
	s.link.inlet = s.inlet
	return s.inlet.Drain(budget)
}

// Next is for Deliver.
func (s *successor) Next() (edge int, ok bool) {
	if edge, ok := nextEdge(s.before); ok {
		return edge, ok
	}
	return nextOf(s.inlet, s.link)
}
