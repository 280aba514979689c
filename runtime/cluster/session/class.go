package session

// class divides frames among lanes: deficit round robin with two lists, as FQ-CoDel has
// them (RFC 8290, 4.2). A lane that had no messages gets its turn before lanes that always
// have messages. So a small message waits for one fragment at most, however many lanes
// send large messages.
type class struct {
	sparse, busy laneList
	now          *lane // the lane whose turn continues in the next frame
	sparseBytes  int   // bytes of sparse lanes since the last turn of a busy lane
}

func (c *class) empty() bool { return c.now == nil && c.sparse.first == nil && c.busy.first == nil }

// turn returns the lane that sends next, or nil.
func (c *class) turn() *lane {
	if c.now != nil {
		return c.now
	}
	switch {
	case c.sparse.first != nil && (c.sparseBytes < FragmentBytes || c.busy.first == nil):
		c.now = c.sparse.pop()
	case c.busy.first != nil:
		c.now = c.busy.pop()
		c.now.sparse = false
		c.sparseBytes = 0
	default:
		return nil
	}
	// The last item of a turn may exceed the credit, by less than FragmentBytes. So the
	// credit is above 0 again now.
	c.now.credit += FragmentBytes
	return c.now
}

func (c *class) spend(l *lane, n int) {
	if l.sparse {
		c.sparseBytes += n
	}
}
