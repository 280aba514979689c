package cluster

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

const (
	simFaultsMax = 12
	simPauseMax  = time.Minute
	simLateMax   = time.Minute // longer than retry.timeout, if messages may be dropped
	neverExpires = time.Hour   // as retry.timeout
)

// loose reports whether messages may be dropped because a node could not be reached for
// longer than retry.timeout, or has forgotten a client.
func (s *simulation) loose() bool { return s.config.Retry.Timeout < neverExpires || s.forgets }

// draw draws the faults of the run, and how it ends.
func (s *simulation) draw(r *rand.Rand) {
	if r.IntN(4) == 0 {
		s.expireSoon(r)
	}
	s.drawNetwork(r)
	if r.IntN(4) == 0 {
		s.misplaced = r.Float64()
	}
	if r.IntN(4) == 0 {
		s.profile = []string{member.ProfileLocal, member.ProfileLAN}[r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		s.cutAtEnd = 1 + time.Duration(r.Int64N(int64(10*time.Second)))
	}
	s.leaveAfter = leaveAfter
	switch {
	case r.IntN(3) == 0:
		s.drawScript(r, true)
	case r.IntN(2) == 0:
		s.drawScript(r, false)
	default: // the faults begin when the topology begins to end
		s.until = simEndsWithin
		s.closing = func() { s.drawScript(r, false) }
	}
}

// drawScript draws the faults from now on.
func (s *simulation) drawScript(r *rand.Rand, stops bool) {
	last := s.now
	s.together = stops && r.IntN(2) == 0
	if !s.together && r.IntN(8) > 0 {
		for range r.IntN(simFaultsMax) {
			last = max(last, s.drawFault(r))
		}
	}
	s.at(last, "heal", s.heal)
	s.until = last + simEndsWithin
	if stops {
		s.drawStop(r)
	}
	if s.loose() && !s.together && s.design.nodes > 1 && r.IntN(4) == 0 {
		s.drawFrozen(r)
	}
	s.startsLate = !s.together && r.IntN(8) == 0
}

// drawFrozen lets a node never return. The failure detection of the others, if it is not
// simulated, may have never heard of the node, and reports nothing then.
func (s *simulation) drawFrozen(r *rand.Rand) {
	frozen := r.IntN(s.design.nodes)
	at := s.now + moment(r)
	s.at(at, nodeName(frozen)+" never returns", s.freeze(frozen))
	for i := range s.design.nodes {
		if i == frozen || s.profile != "" || r.IntN(3) == 0 {
			continue
		}
		s.at(at+time.Duration(r.Int64N(int64(10*time.Second))), nodeName(i)+" cannot reach "+nodeName(frozen), func() {
			if s.nodes[frozen].frozen {
				s.nodes[i].report(s.nodes[frozen], false)
			}
		})
	}
}

// freeze returns an event: a process that runs never returns.
func (s *simulation) freeze(node int) func() {
	return func() {
		if n := s.nodes[node]; n.state == simRunning {
			n.frozen, n.frozenAt = true, s.now
			s.counts["nodes that never return"]++
		}
	}
}

// Quiet also begins the faults that wait for the end of the topology.
func (n *simNode) Quiet(group int) {
	if begin := n.sim.closing; begin != nil {
		n.sim.closing = nil
		begin()
	}
	n.sim.point(n)
	n.mailbox.Quiet(group)
}

// moment draws a time: many of them are early, when most messages are sent.
func moment(r *rand.Rand) time.Duration {
	return time.Duration(math.Exp(r.Float64()*math.Log(float64(20*time.Second)/float64(50*time.Microsecond))) * float64(50*time.Microsecond))
}

// drawNetwork draws the faults of the network from now on.
func (s *simulation) drawNetwork(r *rand.Rand) {
	f := transport.Faults{Ordered: r.IntN(3) > 0, DelayMin: int64(50 * time.Microsecond)}
	f.DelayMax = f.DelayMin + r.Int64N(int64([]time.Duration{100 * time.Microsecond, 5 * time.Millisecond, 200 * time.Millisecond}[r.IntN(3)]))
	if r.IntN(2) == 0 {
		f.Loss = 0.3 * r.Float64()
	}
	if r.IntN(3) == 0 {
		f.Duplicate = 0.3 * r.Float64()
	}
	s.net.SetFaults(f)
}

// drawGates lets nodes lose their lease for some time, in some runs.
func (s *simulation) drawGates(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	for range 1 + r.IntN(4) {
		i, at := r.IntN(s.design.nodes), moment(r)
		s.at(at, nodeName(i)+" loses its lease", func() { s.nodes[i].setGate(true) })
		s.at(at+moment(r)/2, nodeName(i)+" has its lease again", func() { s.nodes[i].setGate(false) })
	}
}

// setGate closes or opens the gate of a node.
func (n *simNode) setGate(closed bool) {
	if n.state != simRunning || n.stepper == nil || n.frozen || n.isClosed == closed {
		return
	}
	if n.isClosed = closed; closed {
		n.sim.counts["closed gates"]++
		n.top.border.CloseGate()
		return
	}
	n.top.border.OpenGate(time.Time{})
	n.active = true
}

// drawFault adds a fault to the script, and returns when it ends.
func (s *simulation) drawFault(r *rand.Rand) (end time.Duration) {
	at := s.now + moment(r)
	end = at + moment(r)
	a, b := r.IntN(s.design.nodes), r.IntN(s.design.nodes)
	if r.IntN(4) == 0 {
		a = 0 // the node that decides when groups finish
	}
	switch r.IntN(6) {
	case 0:
		s.at(at, "other faults of the network", func() { s.drawNetwork(r) })
	case 1:
		s.at(at, fmt.Sprintf("cut from %s to %s", nodeName(a), nodeName(b)), func() { s.setCut(a, b, true) })
		s.at(end, fmt.Sprintf("no cut from %s to %s", nodeName(a), nodeName(b)), func() { s.setCut(a, b, false) })
	case 2:
		side := r.IntN(1 << s.design.nodes)
		s.at(at, fmt.Sprintf("partition %b", side), func() { s.partition(side, true) })
		s.at(end, "no partition", func() { s.partition(side, false) })
	case 3:
		end = at + time.Duration(r.Int64N(int64(simPauseMax)))
		if r.IntN(2) == 0 {
			end = at + moment(r)/10
		}
		s.at(at, "pause "+nodeName(a), func() { s.nodes[a].resumeAt = max(s.nodes[a].resumeAt, end); s.nodes[a].delay(end) })
		if r.IntN(2) == 0 {
			s.drawMistake(r, a, at+time.Second, end+time.Second)
		}
	case 4:
		s.drawMistake(r, a, at, end)
	case 5:
		s.at(at, nodeName(a)+" is slow", func() { s.nodes[a].busyUntil = end; s.nodes[a].delay(end) })
	}
	return end
}

// drawMistake lets some nodes believe for some time that a node cannot be reached.
func (s *simulation) drawMistake(r *rand.Rand, about int, at, end time.Duration) {
	for i := range s.design.nodes {
		if i == about || r.IntN(2) == 0 {
			continue
		}
		late := time.Duration(r.Int64N(int64(100 * time.Millisecond)))
		s.at(at+late, fmt.Sprintf("%s cannot reach %s", nodeName(i), nodeName(about)), func() {
			if !s.healed && s.profile == "" {
				s.nodes[i].report(s.nodes[about], false)
			}
		})
		s.at(end+late, fmt.Sprintf("%s reaches %s again", nodeName(i), nodeName(about)), func() {
			if s.profile == "" {
				s.nodes[i].report(s.nodes[about], true)
			}
		})
	}
}

// setCut cuts a link, or ends the cut.
func (s *simulation) setCut(from, to int, cut bool) {
	s.net.Cut(from, to, cut)
	s.cut[[2]int{from, to}] = cut
}

func (s *simulation) partition(side int, cut bool) {
	for a := range s.design.nodes {
		for b := range s.design.nodes {
			if side>>a&1 != side>>b&1 {
				s.setCut(a, b, cut)
			}
		}
	}
}

// heal ends all faults.
func (s *simulation) heal() {
	s.healed = true
	if s.loose() { // nodes may have missed the end of the others
		for _, n := range s.nodes {
			s.at(s.now+simEndsWithin/2, "stop "+n.name, n.stop)
		}
	}
	s.net.Heal()
	clear(s.cut)
	s.net.SetFaults(transport.Faults{DelayMin: int64(100 * time.Microsecond), DelayMax: int64(time.Millisecond), Ordered: true})
	for _, n := range s.nodes {
		if n.resumeAt = 0; s.profile != "" {
			continue
		}
		for _, other := range s.nodes {
			if other != n {
				n.report(other, true)
			}
		}
	}
}

// transmit sends a frame of a node into the network.
func (s *simulation) transmit(n *simNode, to string, f []byte) {
	s.counts["frames"]++
	for _, other := range s.nodes {
		if other.name == to {
			s.trace.step(s.now, kindTransmit, n.index, other.index, len(f))
			s.net.Send(int64(s.now), n.index, other.index, packet{boot: uint64(n.boot), data: f})
		}
	}
}

// drawStop stops nodes like SIGTERM: all of them, or one and later the others.
func (s *simulation) drawStop(r *rand.Rand) {
	at := moment(r)
	rest := at
	spread := leaveAfter / 2
	switch {
	case s.together: // without other faults, so nothing is lost
		s.net.SetFaults(transport.Faults{DelayMin: int64(50 * time.Microsecond), DelayMax: r.Int64N(int64(3 * time.Millisecond))})
		s.leaveAfter = 60 * time.Millisecond
		spread = s.leaveAfter / 4
		at = s.leaveAfter/4 + time.Duration(r.Int64N(int64(spread)))
		rest = at
	case r.IntN(2) == 0: // all at the same time
		s.expireSoon(r)
		s.leaveAfter = moment(r) / 10
	default:
		s.expireSoon(r)
		rest = at + time.Minute
		s.leaveAfter = moment(r) / 10
	}
	first := r.IntN(s.design.nodes)
	s.at(at, "stop "+nodeName(first), func() { s.nodes[first].stop() })
	for i := range s.design.nodes {
		if i != first {
			later := rest + time.Duration(r.Int64N(int64(spread)))
			s.at(later, "stop "+nodeName(i), func() { s.nodes[i].stop() })
		}
	}
	s.until += simEndsWithin
}

// expireSoon draws a retry.timeout after which messages may be dropped.
func (s *simulation) expireSoon(r *rand.Rand) {
	if s.config.Retry.Timeout = time.Duration(1+r.IntN(20)) * time.Second; r.IntN(2) == 0 {
		s.config.Retry.Timeout /= 10
	}
}
