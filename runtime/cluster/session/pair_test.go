package session_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
)

func config(node, peer string, boot uint64) session.Config {
	return session.Config{
		Topology: "bank", Plan: "plan-1", Node: node, Peer: peer, Boot: boot,
		Rand: rand.New(rand.NewPCG(boot, 1)),
	}
}

func open(t testing.TB, c session.Config) *session.Session {
	t.Helper()
	s, err := session.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pair is two sessions without a network between them: each frame arrives at once.
type pair struct {
	t     testing.TB
	now   time.Duration
	ends  [2]*session.Session
	got   [2][]session.Delivery
	waits int
	drop  func(from int, frame []byte) bool // loses frames; nil: none
}

func newPair(t testing.TB, change ...func(*session.Config)) *pair {
	p := &pair{t: t}
	for i, c := range []session.Config{config("n1", "n2", 1), config("n2", "n1", 2)} {
		for _, f := range change {
			f(&c)
		}
		p.ends[i] = open(t, c)
	}
	p.settle()
	for i, s := range p.ends {
		if e := fmt.Sprint(s.Events()); e != fmt.Sprintf("[{%d}]", 2-i) {
			t.Fatalf("events of the handshake: %v", e)
		}
	}
	return p
}

// settle exchanges frames until neither end has one.
func (p *pair) settle() {
	p.t.Helper()
	for busy := true; busy; {
		busy = false
		for i := range p.ends {
			for p.pass(i) {
				busy = true
			}
		}
	}
}

// pass passes a frame of one end to the other.
func (p *pair) pass(from int) bool {
	f := p.ends[from].Frame(p.now)
	if f == nil {
		return false
	}
	if p.drop != nil && p.drop(from, f) {
		return true
	}
	var err error
	if p.got[1-from], err = p.ends[1-from].Receive(p.now, f, p.got[1-from]); err != nil {
		p.t.Fatal(err)
	}
	return true
}

// wait advances the time to the next deadline.
func (p *pair) wait() bool {
	next, found := time.Duration(0), false
	for _, s := range p.ends {
		if at, ok := s.Next(); ok && (!found || at < next) {
			next, found = at, true
		}
	}
	if p.waits++; p.waits > 10_000 {
		p.t.Fatal("deadlines do not end")
	}
	if found {
		p.now = max(p.now, next)
		p.settle()
	}
	return found
}

func (p *pair) send(from int, lane uint64, m []byte) {
	p.t.Helper()
	if err := p.ends[from].Send(lane, m); err != nil {
		p.t.Fatal(err)
	}
}
