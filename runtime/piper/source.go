package piper

// pingDone is told that Ping has said Done, or is not to be called any more since
// the topology stops.
func (w *watch) pingDone() {
	u := w.unit
	switch {
	case u.proc.pool.stopping.Load():
		u.ping = pingNone
		if u.proc.Ping || w.phase != watchRunning { // Serve that runs returns
			w.endSource()
		}
		if w.phase != watchRunning {
			w.dropTicks()
		}
	case u.ping != pingNone:
		u.ping = pingNone
		w.reportEnd(ChildEnded, nil)
	}
}

// beginSource lets a new instance send of itself, unless the topology stops or its
// group has finished.
func (w *watch) beginSource() {
	u := w.unit
	if !u.proc.Ping && !u.proc.Serve {
		return
	}
	if u.proc.pool.stopping.Load() {
		w.endSource()
		return
	}
	if !w.isSource {
		w.isSource = u.proc.group.sourceBegins()
	}
	if w.isSource {
		u.serving = u.proc.Serve
		if u.proc.Ping {
			u.ping, u.idleExp = pingActive, 0
		}
	}
}

// endSource is told that the instance will send no more of itself.
func (w *watch) endSource() {
	if w.isSource {
		w.isSource = false
		w.unit.proc.group.sourceDone()
	}
}

// dropTicks drops the ticks that wait for an instance which is down when the
// topology stops. They are not worth a restart, for which Run would wait.
func (w *watch) dropTicks() {
	u := w.unit
	g := u.proc.group
	g.enter()
	defer g.leave(nil)
	w.droppingTicks = true
	for l := u.inlinks.Load(); l != nil; l = l.nextIn {
		if edge := &u.proc.pool.edges[l.edge]; edge.From < 0 && !l.empty() {
			if n, _ := l.inlet.Drain(1); n > 0 {
				edge.discarded.Add(uint64(n))
			}
		}
	}
	w.droppingTicks = false
}
