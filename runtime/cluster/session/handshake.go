package session

import (
	"fmt"
	"slices"
	"time"
)

// handshake is the state of hellos and refusals. A hello with a nonce of this process in
// it proves that its sender is alive now: it is not a late frame of a former incarnation.
type handshake struct {
	nonce    uint64        // of the hellos of this process; a new one after each incarnation of the peer
	nextAt   time.Duration // when the hello is repeated
	attempts int

	// An answer that is due.
	due      bool
	to, echo uint64 // the process that gets it, and its nonce
	refusal  refusal
	refuses  bool          // the answer is a refusal
	credit   time.Duration // answers cost retry.min of it each, and time gives it back
	creditAt time.Duration

	reported []report // the last refusals that were reported
}

// report is a refusal that was reported.
type report struct {
	byPeer bool
	boot   uint64
	reason Reason
}

// reportsMax is how many reports are remembered: each process of the peer has at most two.
const reportsMax = 16

// reportRefusal reports a refusal, but not for each attempt.
func (s *Session) reportRefusal(e Refused) {
	k := &s.hands
	r := report{e.ByPeer, e.Boot, e.Reason}
	if slices.Contains(k.reported, r) {
		return
	}
	if k.reported = append(k.reported, r); len(k.reported) > reportsMax {
		k.reported = k.reported[1:]
	}
	s.events = append(s.events, e)
}

// handshakeFrame returns a hello or a refusal if one is due.
func (s *Session) handshakeFrame() []byte {
	k := &s.hands
	if k.due && s.takeCredit() {
		k.due = false
		if k.refuses {
			return k.refusal.append(nil)
		}
		return s.hello(k.to, k.echo)
	}
	if s.peer.knows || !s.connected || s.now < k.nextAt {
		return nil
	}
	k.attempts++
	first := s.config.RetryMin
	if s.peer.refuses {
		first = s.config.RetryMax
	}
	k.nextAt = s.now + s.delay(first, s.config.RetryMax, k.attempts)
	return s.hello(s.peer.boot, s.peer.nonce)
}

// handshakeTime returns when handshakeFrame will return a frame.
func (s *Session) handshakeTime() (at time.Duration, ok bool) {
	k := &s.hands
	at = never
	if k.due {
		at = k.creditAt + max(0, s.config.RetryMin-k.credit)
	}
	if !s.peer.knows && s.connected {
		at = min(at, k.nextAt)
	}
	return at, at != never
}

// takeCredit limits answers: a peer that floods this node with hellos gets few of them.
func (s *Session) takeCredit() bool {
	k := &s.hands
	most := hellosInRow * s.config.RetryMin
	k.credit = min(most, k.credit+s.now-k.creditAt)
	k.creditAt = s.now
	if k.credit < s.config.RetryMin {
		return false
	}
	k.credit -= s.config.RetryMin
	return true
}

func (s *Session) hello(to, echo uint64) []byte {
	accepted := to != 0 && to == s.peer.boot
	h := hello{
		version: Version, from: s.config.Boot, nonce: s.hands.nonce, to: to, echo: echo,
		accepted: accepted, knows: accepted && s.peer.knows,
		topology: s.config.Topology, plan: s.config.Plan, fromName: s.config.Node, destName: s.config.Peer,
	}
	return h.append(nil)
}

// answer sends a hello to a process as soon as possible.
func (s *Session) answer(boot, nonce uint64) {
	s.hands.due, s.hands.refuses = true, false
	s.hands.to, s.hands.echo = boot, nonce
}

func (s *Session) receiveHello(frame []byte) error {
	h, err := parseHello(frame)
	if err != nil {
		return err
	}
	if reason, text := s.refusalOf(&h); reason != 0 {
		s.refuse(&h, reason, text)
		return nil
	}
	forUs := h.to == s.config.Boot
	if h.from == s.peer.boot {
		s.peer.heard, s.peer.nonce = s.now, h.nonce
		if accepted := forUs && h.accepted; !accepted && !s.peer.knows && s.flights.len() > 0 {
			s.peer.ignores = true
		} else if accepted {
			if s.peer.ignores { // the frames that were sent before
				s.timeoutAt = s.now
			}
			s.peer.knows, s.peer.refuses, s.peer.ignores = true, false, false
		}
		if !forUs || !h.knows {
			s.answer(h.from, h.nonce)
		}
		return nil
	}
	if !forUs || h.echo != s.hands.nonce {
		s.answer(h.from, h.nonce)
		return nil
	}
	if slices.Contains(s.former, h.from) {
		if s.peer.boot == 0 && s.removed {
			s.refuse(&h, Excluded, fmt.Sprintf("the node %q was removed", s.config.Peer))
			return nil
		}
		s.refuse(&h, Replaced, fmt.Sprintf("another process uses the name %q", s.config.Peer))
		return nil
	}
	if s.config.Accept == nil || s.config.Accept(h.from) {
		s.accept(&h)
	}
	return nil
}

// refusalOf returns why a hello is refused; 0 if it is not.
func (s *Session) refusalOf(h *hello) (Reason, string) {
	switch c := &s.config; {
	case h.version != Version:
		return VersionUnknown, fmt.Sprintf("the version must be %d, got %d", Version, h.version)
	case h.topology != c.Topology:
		return OtherTopology, fmt.Sprintf("the topology must be %q, got %q", c.Topology, h.topology)
	case h.fromName != c.Peer || h.destName != c.Node:
		return WrongName, fmt.Sprintf("the hello must be from %q to %q, got %q to %q", c.Peer, c.Node, h.fromName, h.destName)
	case h.plan != c.Plan:
		return PlanIncompatible, fmt.Sprintf("the plan must be %q, got %q", c.Plan, h.plan)
	}
	return 0, ""
}

func (s *Session) refuse(h *hello, reason Reason, text string) {
	s.counts.Refusals++
	s.hands.due, s.hands.refuses = true, true
	s.hands.refusal = refusal{version: Version, from: s.config.Boot, to: h.from, echo: h.nonce, reason: reason, text: text}
	if reason != Replaced && reason != Excluded { // the upper layer knows that the process was replaced, or has called Exclude
		s.reportRefusal(Refused{Boot: h.from, Reason: reason, Text: text})
	}
}

func (s *Session) receiveRefusal(frame []byte) error {
	f, err := parseRefusal(frame)
	if err != nil {
		return err
	}
	if f.to != s.config.Boot || f.echo != s.hands.nonce {
		s.counts.Stale++
		return nil
	}
	s.peer.refuses, s.peer.knows = true, false
	s.reportRefusal(Refused{ByPeer: true, Boot: f.from, Reason: f.reason, Text: f.text})
	return nil
}

// accept makes a process the current incarnation of the peer.
func (s *Session) accept(h *hello) {
	old := s.peer.boot
	s.peer = incarnation{boot: h.from, nonce: h.nonce, knows: h.accepted, heard: s.now}
	s.hands.nonce = s.config.Rand.Uint64()
	s.answer(h.from, h.nonce)
	s.hands.attempts = 1
	s.hands.nextAt = s.now + s.delay(s.config.RetryMin, s.config.RetryMax, 1)
	if old == 0 {
		s.events = append(s.events, PeerStarted{Boot: h.from})
		return
	}
	s.noteFormer(old)
	s.changed = true
	s.events = append(s.events, PeerRestarted{Old: old, New: h.from, Forgotten: s.forget()})
}

// noteFormer notes an incarnation that is not accepted again.
func (s *Session) noteFormer(boot uint64) {
	if s.former = append(s.former, boot); len(s.former) > formerMax {
		s.former = s.former[1:]
	}
}

// Exclude ends the connection with an incarnation of the peer, which must not come back. If
// it is the current one, the session forgets all messages that it was given, and the next
// incarnation is reported with [PeerStarted]. If it was not found yet, it is refused from now
// on. Exclude changes nothing and returns false if a newer incarnation is the current one.
func (s *Session) Exclude(boot uint64) bool { return s.exclude(boot, true) }

// Supersede is Exclude for an incarnation that another one has replaced, which was not found
// yet. It reports whether the incarnation was the current one.
func (s *Session) Supersede(boot uint64) bool {
	current := s.peer.boot == boot
	return s.exclude(boot, false) && current
}

func (s *Session) exclude(boot uint64, removed bool) bool {
	switch s.peer.boot {
	case boot:
		s.peer = incarnation{}
		s.hands.nonce, s.hands.due = s.config.Rand.Uint64(), false // an answer to an old hello must not bring it back
		s.forget()
	case 0:
	default:
		return false
	}
	if s.removed = removed; !slices.Contains(s.former, boot) {
		s.noteFormer(boot)
	}
	return true
}
