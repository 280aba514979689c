package session_test

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// TestExcludedPeer excludes a process that still runs. It must not come back, and gets a
// reason. The next process of the peer gets no message of the former connection.
func TestExcludedPeer(t *testing.T) {
	p := newPair(t)
	p.send(0, 100, []byte("arrives"))
	p.settle()
	p.send(0, 100, []byte("in transit"))
	p.ends[0].Frame(p.now)
	p.send(0, 100, []byte("queued"))
	p.send(1, 100, []byte("of the excluded process"))
	p.got = [2][]session.Delivery{}

	if !p.ends[0].Exclude(2) {
		t.Fatal("the current incarnation was not excluded")
	}
	p.now += session.RetryMaxDefault * 2 // when hellos are sent again
	p.settle()
	if e := p.ends[0].Events(); len(e) != 0 || len(p.got[0]) != 0 {
		t.Errorf("the excluded process is accepted: %v, %v", e, p.got[0])
	}
	want := session.Refused{ByPeer: true, Boot: 1, Reason: session.Excluded, Text: `the node "n2" was removed`}
	if e := p.ends[1].Events(); len(e) != 1 || e[0] != want {
		t.Errorf("the excluded process has the events %v, want %v", e, want)
	}

	p.ends[1] = open(t, config("n2", "n1", 3))
	p.now += session.RetryMaxDefault * 2
	p.settle()
	if e := fmt.Sprint(p.ends[0].Events()); e != "[{3}]" {
		t.Errorf("the next process has the events %s, want PeerStarted", e)
	}
	p.send(0, 100, []byte("new"))
	p.settle()
	if len(p.got[1]) != 1 || string(p.got[1][0].Message) != "new" {
		t.Errorf("the next process got %v, want one message", p.got[1])
	}
	if p.ends[0].Exclude(2) {
		t.Error("a newer process was excluded with the former one")
	}
	p.send(1, 100, []byte("goes on"))
	if p.settle(); len(p.got[0]) != 1 {
		t.Errorf("n1 got %v, want one message", p.got[0])
	}
}

// TestExcludedBeforeItIsFound excludes a process whose first hello arrives later.
func TestExcludedBeforeItIsFound(t *testing.T) {
	n1, n2 := open(t, config("n1", "n2", 1)), open(t, config("n2", "n1", 2))
	if !n1.Exclude(2) {
		t.Fatal("the process was not excluded")
	}
	_ = n2.Send(100, []byte("of the excluded process"))
	if got := exchange(t, 0, n2, n1); len(got) != 0 {
		t.Errorf("n1 got %v", got)
	}
	if e := n1.Events(); len(e) != 0 {
		t.Errorf("n1 has the events %v", e)
	}
}
