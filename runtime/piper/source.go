package piper

// source is the part of a watched instance that sends on its own, by Ping or Serve.
type source struct {
	unit    *Unit
	counted bool // in group.sources
}

// begin lets a new instance send on its own, unless the topology stops or its
// group has finished.
func (s *source) begin() {
	u := s.unit
	if !u.proc.Ping && !u.proc.Serve {
		return
	}
	if u.proc.pool.stopping.Load() {
		s.end()
		return
	}
	if !s.counted {
		s.counted = u.proc.group.sourceBegins()
	}
	if s.counted {
		u.serving = u.proc.Serve
		if u.proc.Ping {
			u.ping, u.idleExp = pingActive, 0
		}
	}
}

// end ends the source: the instance will not send on its own again.
func (s *source) end() {
	if s.counted {
		s.counted = false
		s.unit.proc.group.sourceDone()
	}
}

// pingDone ends the calls of u's Ping.
func pingDone(u *Unit) {
	if v := u.watch(); v != nil {
		v.pingDone()
	} else if u.ping != pingNone {
		u.ping = pingNone
		u.proc.group.sourceDone()
	}
}

// pingDone handles the end of Ping: Ping has returned Done, or must not be called again
// because the topology stops.
func (w *watch) pingDone() {
	u := w.unit
	switch {
	case u.proc.pool.stopping.Load():
		u.ping = pingNone
		if u.proc.Ping || w.phase != watchRunning { // a Serve that runs ends the source when it returns
			w.source.end()
		}
		if w.phase == watchRunning {
			w.sourceStopped()
		} else {
			w.dropTicks()
		}
	case u.ping != pingNone:
		u.ping = pingNone
		w.reportEnd(ChildEnded, nil)
	}
}

// dropTicks drops the queued ticks of an instance that is down when the topology stops.
// A restart only for ticks would delay the end of Run.
func (w *watch) dropTicks() {
	u := w.unit
	g := u.proc.group
	g.enter()
	defer g.leave(nil)
	w.droppingTicks = true
	for l := u.inlinks.Load(); l != nil; l = l.nextIn.Load() {
		edge := &u.proc.pool.edges[l.heads[0].Index()] // not l.edge, because no message is being handled
		if edge.From < 0 && !l.empty() {
			_, _ = l.inlet.Drain(1) // discards the tick, because HasFailed is true
		}
	}
	w.droppingTicks = false
}
