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
