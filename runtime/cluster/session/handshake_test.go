package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
)

// exchange passes frames between sessions until none has one. Frames of each go to the
// other.
func exchange(t *testing.T, now time.Duration, a, b *session.Session) (got []session.Delivery) {
	t.Helper()
	for busy := true; busy; {
		busy = false
		for _, from := range []*session.Session{a, b} {
			to := b
			if from == b {
				to = a
			}
			if f := from.Frame(now); f != nil {
				busy = true
				var err error
				if got, err = to.Receive(now, f, got); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return got
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		reason session.Reason
		change func(*session.Config)
		text   string
	}{
		{session.OtherTopology, func(c *session.Config) { c.Topology = "shop" }, `the topology must be "bank", got "shop"`},
		{session.PlanIncompatible, func(c *session.Config) { c.Plan = "plan-2" }, `the plan must be "plan-1", got "plan-2"`},
		{session.WrongName, func(c *session.Config) { c.Node = "n3" }, `the hello must be from "n2" to "n1", got "n3" to "n1"`},
	} {
		a := open(t, config("n1", "n2", 1))
		other := config("n2", "n1", 2)
		c.change(&other)
		b := open(t, other)
		_ = a.Send(100, []byte("a"))
		got := exchange(t, 0, a, b)
		events := b.Events()
		if want := (session.Refused{ByPeer: true, Boot: 1, Reason: c.reason, Text: c.text}); len(got) > 0 || len(events) == 0 || events[len(events)-1] != want {
			t.Errorf("%v: messages %v, events %+v, want %+v", c.reason, got, events, want)
		}
		if e := fmt.Sprintf("%+v", a.Events()); !strings.Contains(e, "ByPeer:false Boot:2 Reason:"+c.reason.String()) {
			t.Errorf("%v: the node that refuses reports %s", c.reason, e)
		}
		now := time.Duration(0)
		for range 20 {
			at, ok := b.Next()
			if !ok {
				t.Fatalf("%v: a refused node gives up", c.reason)
			}
			now = max(now, at)
			exchange(t, now, a, b)
		}
		if now < 15*session.RetryMaxDefault {
			t.Errorf("%v: 20 attempts within %v", c.reason, now)
		}
		if more := append(a.Events(), b.Events()...); len(more) > 0 {
			t.Errorf("%v: a refusal was reported again: %v", c.reason, more)
		}
	}
}

// TestUnknownVersion answers a hello of a later version, of which only the start is known.
func TestUnknownVersion(t *testing.T) {
	a := open(t, config("n1", "n2", 1))
	hello := open(t, config("n2", "n1", 2)).Frame(0)
	hello[1] = 9
	hello = append(hello[:18], "the future"...)
	if _, err := a.Receive(0, hello, nil); err != nil {
		t.Fatal(err)
	}
	refusal := a.Frame(0)
	b := open(t, config("n2", "n1", 2))
	b.Frame(0)
	if _, err := b.Receive(0, refusal, nil); err != nil {
		t.Fatal(err)
	}
	if e := fmt.Sprintf("%+v", b.Events()); e != "[{ByPeer:true Boot:1 Reason:unknown version Text:the version must be 1, got 9}]" {
		t.Errorf("events %s", e)
	}
}

// TestRestartedPeer checks that no message for the former incarnation reaches the new one,
// and that the new one gets messages of lanes that the former one knew.
func TestRestartedPeer(t *testing.T) {
	p := newPair(t)
	p.send(0, 100, []byte("arrives"))
	p.settle()
	p.send(0, 100, []byte("in transit"))
	p.ends[0].Frame(p.now)
	p.send(0, 100, []byte("queued"))
	p.got = [2][]session.Delivery{}

	p.ends[1] = open(t, config("n2", "n1", 3))
	p.settle()
	if err := p.ends[0].Send(100, []byte("too early")); err != session.ErrUnreadEvents {
		t.Errorf("Send before Events: %v, want ErrUnreadEvents", err)
	}
	if e := fmt.Sprintf("%T%+v", p.ends[0].Events()[0], p.ends[0].Stats().Forgotten); e != "session.PeerRestarted2" && e != "session.PeerRestarted3" {
		t.Errorf("event %s", e)
	}
	p.send(0, 100, []byte("again"))
	p.settle()
	if len(p.got[1]) != 1 || string(p.got[1][0].Message) != "again" {
		t.Errorf("the new incarnation got %v, want one message", p.got[1])
	}
}

// TestLateHello repeats the hellos of a former incarnation.
func TestLateHello(t *testing.T) {
	var hellos [][]byte
	p := &pair{t: t, ends: [2]*session.Session{open(t, config("n1", "n2", 1)), open(t, config("n2", "n1", 2))}}
	p.drop = func(from int, frame []byte) bool {
		if from == 1 && frame[0] == 1 {
			hellos = append(hellos, frame)
		}
		return false
	}
	p.settle()
	p.ends[1] = open(t, config("n2", "n1", 3))
	p.settle()
	p.ends[0].Events()
	for _, h := range hellos {
		p.now += time.Second
		if _, err := p.ends[0].Receive(p.now, h, nil); err != nil {
			t.Fatal(err)
		}
		p.settle()
	}
	if e := p.ends[0].Events(); len(e) > 0 {
		t.Errorf("%d late hellos: %+v", len(hellos), e)
	}
	if len(hellos) < 3 {
		t.Errorf("%d hellos, want at least 3", len(hellos))
	}
}

// TestTwoProcesses lets two processes with one name talk to n1. Frames of n1 reach both,
// the worst case.
func TestTwoProcesses(t *testing.T) {
	n1 := open(t, config("n1", "n2", 1))
	both := []*session.Session{open(t, config("n2", "n1", 2)), open(t, config("n2", "n1", 3))}
	counts := map[string]int{}
	now := time.Duration(0)
	for range 2000 {
		now += 10 * time.Millisecond
		for f := n1.Frame(now); f != nil; f = n1.Frame(now) {
			for _, s := range both {
				_, _ = s.Receive(now, f, nil)
			}
		}
		for i, s := range both {
			for _, e := range s.Events() {
				counts[fmt.Sprintf("process %d: %T %+v", 2+i, e, e)]++
			}
			_ = s.Send(100, []byte("a"))
			for f := s.Frame(now); f != nil; f = s.Frame(now) {
				if _, err := n1.Receive(now, f, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, e := range n1.Events() {
			counts[fmt.Sprintf("n1: %T", e)]++
		}
	}
	if counts["n1: session.PeerRestarted"] > 1 {
		t.Errorf("n1 must report at most one restart, got %v", counts)
	}
	refused := 0
	for e := range counts {
		if strings.Contains(e, `another process uses the name "n2"`) {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("one of the processes must know that it was replaced, got %v", counts)
	}
}

// TestTwoProcessesOneAddress is the same, but frames of n1 reach only the first process.
// So the second one never proves that it is alive.
func TestTwoProcessesOneAddress(t *testing.T) {
	n1, n2, other := open(t, config("n1", "n2", 1)), open(t, config("n2", "n1", 2)), open(t, config("n2", "n1", 3))
	for now := time.Duration(0); now < 30*time.Second; now += 10 * time.Millisecond {
		_ = n1.Send(100, []byte("a"))
		exchange(t, now, n1, n2)
		for f := other.Frame(now); f != nil; f = other.Frame(now) {
			if _, err := n1.Receive(now, f, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range n1.Events() {
			if _, restarted := e.(session.PeerRestarted); restarted {
				t.Errorf("%+v", e)
			}
		}
	}
}

// TestFloodOfHellos answers few of many hellos.
func TestFloodOfHellos(t *testing.T) {
	n1 := open(t, config("n1", "n2", 1))
	hello := open(t, config("n2", "n1", 2)).Frame(0)
	frames := 0
	for i := range 100_000 {
		now := time.Duration(i) * 10 * time.Microsecond // one second
		if _, err := n1.Receive(now, hello, nil); err != nil {
			t.Fatal(err)
		}
		for n1.Frame(now) != nil {
			frames++
		}
	}
	if limit := int(time.Second/session.RetryMinDefault) + 15; frames > limit {
		t.Errorf("%d answers in a second, want at most %d", frames, limit)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := config("n1", "n2", 1)
	for want, change := range map[string]func(*session.Config){
		"Topology must have 1 to 255 bytes, got 0":        func(c *session.Config) { c.Topology = "" },
		"Node must have 1 to 255 bytes, got 256":          func(c *session.Config) { c.Node = strings.Repeat("n", 256) },
		"Node and Peer must differ":                       func(c *session.Config) { c.Peer = "n1" },
		"the plan must have at most 128 bytes, got 129":   func(c *session.Config) { c.Plan = strings.Repeat("p", 129) },
		"the boot id must not be 0":                       func(c *session.Config) { c.Boot = 0 },
		"Rand is nil":                                     func(c *session.Config) { c.Rand = nil },
		"retry.min must not exceed retry.max, got 2s and": func(c *session.Config) { c.RetryMin, c.RetryMax = 2*time.Second, time.Second },
	} {
		c := good
		change(&c)
		if _, err := session.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestFramesBeforeTheAcceptance sends a message to a process that accepts the sender a moment later,
// because its address table is late. The message is sent again at once, and not after a timeout.
func TestFramesBeforeTheAcceptance(t *testing.T) {
	p, accepts := &pair{t: t}, false
	a, b := config("n1", "n2", 1), config("n2", "n1", 2)
	b.Accept = func(uint64) bool { return accepts }
	p.ends = [2]*session.Session{open(t, a), open(t, b)}
	p.send(0, 9, []byte("early"))
	for p.ends[0].Stats().FramesSent < 3 { // a hello, its repetition and the message
		p.settle()
		p.wait()
	}
	accepts = true
	began := p.now
	for len(p.got[1]) == 0 {
		p.wait()
	}
	if took := p.now - began; took > 200*time.Millisecond {
		t.Errorf("the message has arrived after %v", took)
	}
}
