package piper

// Needed reports for each group whether a node that drains must go on to accept messages for
// it. busy lists groups that will get messages here. A message that is queued on this node, for
// an instance here or on another node, may have to wait for room in the groups downstream of its
// receiver. A message that enters a cycle on another node may also have to wait for room in the cycle.
func (in Interior) Needed(busy []bool) []bool {
	needed := make([]bool, len(in.pool.groups))
	for i, g := range in.pool.groups {
		if g.isIdle() && !busy[i] {
			continue
		}
		g.needDownstream(needed)
		needed[i] = needed[i] || g.cyclic && g.hasEntering()
	}
	return needed
}

func (g *group) needDownstream(needed []bool) {
	for _, d := range g.down {
		if !needed[d.index] {
			needed[d.index] = true
			d.needDownstream(needed)
		}
	}
}

// hasEntering reports whether messages from outside of the group are queued for instances
// of other nodes.
func (g *group) hasEntering() bool {
	for _, u := range g.units {
		for l := u.inlinks.Load(); u.remote && l != nil; l = l.nextIn.Load() {
			if from := l.SendingUnit(); !l.empty() && (from == nil || from.proc.group != g) {
				return true
			}
		}
	}
	return false
}
