package member

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// TestRestartOfAll: all nodes stop and start at the same time, and soon all know all. No
// running process is declared dead.
func TestRestartOfAll(t *testing.T) {
	for _, size := range speed.Pick(t, []int{3, 40}, []int{3, 100}, []int{3, 100, 1000}) {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			w := cluster(t, 1, size, Config{})
			w.run(5 * time.Second)
			for _, n := range w.nodes {
				n.kill()
			}
			w.run(time.Second)
			count := w.deaths()
			before := w.sent
			for _, n := range w.nodes {
				n.boot()
			}
			took := w.until("all know all", 30*time.Second, func() bool { return w.agree(Alive, w.nodes...) })
			perNode := float64(w.sent-before) / float64(size)
			t.Logf("all know all after %v and %.0f messages per node", took, perNode)
			w.run(20 * time.Second)
			if len(count) > 0 {
				t.Errorf("deaths: %v", count)
			}
			if limit := 2*float64(size) + 100; perNode > limit {
				t.Errorf("a node sent %.0f messages, want at most %.0f", perNode, limit)
			}
			for _, n := range w.nodes {
				if n.core.Fenced() {
					t.Fatalf("%s is fenced", n.name)
				}
			}
		})
	}
}

// TestJoinsAndLeaves: many nodes join and leave a cluster. Each join and each leave costs
// a number of messages that grows with the cluster only linearly. The lists do not grow.
func TestJoinsAndLeaves(t *testing.T) {
	speed.NoRace(t)
	const size = 20
	members := speed.Pick(t, 250, 1000, 10_000)
	w := cluster(t, 2, size, Config{ForgetLeft: time.Minute})
	w.run(10 * time.Second)
	guest := w.add("guest", Config{ForgetLeft: time.Minute}, "n1", "n2", "n3")
	start, before := w.now, w.sent
	for i := range members {
		guest.name = fmt.Sprintf("guest%d", i)
		guest.place = guest.name
		guest.boot()
		w.run(400 * time.Millisecond)
		if i%100 == 0 && !w.agree(Alive, w.nodes...) {
			t.Fatalf("not all know %s\n%s", guest.name, w.summary())
		}
		guest.core.Leave(guest.age())
		guest.effects()
		w.run(50 * time.Millisecond)
		if !guest.core.Left() {
			t.Fatalf("%s got no confirmations", guest.name)
		}
		guest.kill()
	}
	pings := int((w.now - start).Seconds()) * 2 * (size + 1)
	each := float64(w.sent-before-pings) / float64(members) / (size + 1)
	t.Logf("a join and a leave cost %.1f messages per member", each)
	if each > 5 {
		t.Errorf("a join and a leave cost %.1f messages per member, want at most 5", each)
	}
	for _, n := range w.nodes[:size] {
		if got := len(n.core.ring); got > size+160 {
			t.Errorf("%s has %d members, but members that have left are forgotten after a minute", n.name, got)
		}
	}
	w.run(5 * time.Minute)
	for _, n := range w.nodes[:size] {
		checkCore(t, n.core)
		if got := len(n.core.ring); got != size-1 {
			t.Errorf("%s has %d members, want %d: %v", n.name, got, size-1, n.core.Members()[:3])
		}
	}
}

// TestLargeCluster: 1,000 nodes detect a death, and a node joins with at most two
// messages per member.
func TestLargeCluster(t *testing.T) {
	speed.Long(t)
	const size = 1000
	w := cluster(t, 3, size, Config{})
	w.run(20 * time.Second)
	start, before := w.now, w.sent
	n := w.add("n1001", Config{}, "n1", "n2", "n3")
	n.boot()
	joined := w.until("known to all", 10*time.Second, func() bool { return w.agree(Alive, n) })
	w.run(10 * time.Second)
	each := float64(w.sent-before)/size - 2*(w.now-start).Seconds()
	w.nodes[500].kill()
	took := w.until("dead for all", 20*time.Second, func() bool { return w.agree(Dead, w.nodes[500]) })
	t.Logf("a death is known to all after %v, a new node after %v and %.2f messages per member", took, joined, each)
	if each > 2 {
		t.Errorf("a join cost %.2f messages per member, want at most 2", each)
	}
}

// TestAnswersToAnother: a node that gets answers to pings of another process with its name reports the duplicate once,
// except shortly after its start: then the other process is the former one.
func TestAnswersToAnother(t *testing.T) {
	for _, kind := range []kind{kindAck, kindNack} {
		w := cluster(t, 1, 3, Config{})
		n, other := w.nodes[0], w.nodes[1]
		reports := 0
		w.onEvent = func(at *simNode, e Event) {
			if at == n && e.Kind == EventDuplicate {
				reports++
			}
		}
		answer := func(want int) {
			t.Helper()
			echo := n.core.self.boot - 1
			if err := n.core.Step(n.age(), "n2", appendMessage(nil, &message{kind: kind, boot: other.core.self.boot, echo: echo, sequence: 1})); err != nil {
				t.Fatal(err)
			}
			n.effects()
			if reports != want {
				t.Errorf("%d reports after %v, want %d", reports, n.age(), want)
			}
		}
		answer(0)
		w.run(n.core.messageAge() + time.Second)
		answer(1)
		answer(1)
	}
}

// TestRumorsAreOnce: a claim about a member that changes is in one list of news, once, and is sent as often as a new claim.
func TestRumorsAreOnce(t *testing.T) {
	c := cluster(t, 1, 3, Config{}).nodes[0].core
	p := c.peers["n2"]
	for _, urgent := range []bool{true, true, false, false, true} {
		p.transmissions = min(p.transmissions, 1) // the others were sent
		c.spread(p, urgent)
		first := p.transmissions
		for i, list := range c.rumors {
			want := 0
			if i == rank(urgent) {
				want = 1
			}
			n := 0
			for _, q := range list {
				if q == p {
					n++
				}
			}
			if n != want || first < 2 {
				t.Errorf("list %d has the claim %d times, want %d, to be sent %d times", i, n, want, first)
			}
		}
	}
}

// TestDuplicates: two processes with one name run at the same time. The others report it.
// The older process reaches no majority any more, and is replaced when it learns why.
func TestDuplicates(t *testing.T) {
	w := cluster(t, 4, 5, Config{})
	w.run(10 * time.Second)
	second := w.add("n3", Config{}, "n1", "n2", "n3")
	second.place = "other"
	reports := make(map[string]int)
	w.onEvent = func(n *simNode, e Event) {
		if e.Kind == EventDuplicate || e.Kind == EventReplaced {
			reports[fmt.Sprintf("%s at %s: %s", n.name, n.place, describeEvent(e))]++
		}
	}
	second.bootAs(5000)
	w.run(30 * time.Second)
	w.run(30 * time.Second)
	if !w.nodes[2].core.Fenced() {
		t.Error("the older process is not fenced")
	}
	if second.core.Fenced() {
		t.Error("the newer process is fenced")
	}
	reporters := 0
	for report, count := range reports {
		if count > 1 {
			t.Errorf("%d times: %s", count, report)
		}
		if strings.HasSuffix(report, "n3 duplicate") {
			reporters++
		}
	}
	if reporters == 0 {
		t.Errorf("the duplicate was not reported: %v", reports)
	}
	// A message reaches the older process although its name has another address.
	claim := second.core.self.record
	payload := appendMessage(nil, &message{kind: kindGossip, boot: w.nodes[0].core.self.boot, records: []record{claim}})
	if err := w.nodes[2].core.Step(w.nodes[2].age(), "n1", payload); err != nil {
		t.Fatal(err)
	}
	w.nodes[2].effects()
	if reports["n3 at n3: replaced"] != 1 || !w.nodes[2].core.Fenced() {
		t.Errorf("the older process did not report that it was replaced: %v", reports)
	}
	sent := w.nodes[2].core.stats.Sent
	w.run(10 * time.Second)
	if w.nodes[2].core.stats.Sent != sent {
		t.Error("a replaced process still sends")
	}
}

// TestOwnerKeepsTheName: a second process joins on the other side of a cut. When the process that has the name
// by another authority hears of it, it does not end, and the others know it as alive.
func TestOwnerKeepsTheName(t *testing.T) {
	w := cluster(t, 4, 5, Config{})
	w.run(10 * time.Second)
	owner := w.nodes[2]
	owner.core.owner = func() bool { return true }
	other := owner.core.self.record
	other.boot, other.address = other.boot+1000, "other:1"
	payload := appendMessage(nil, &message{kind: kindGossip, boot: w.nodes[0].core.self.boot, records: []record{other}})
	if err := owner.core.Step(owner.age(), "n1", payload); err != nil {
		t.Fatal(err)
	}
	owner.effects()
	w.run(10 * time.Second)
	if owner.core.replaced || owner.core.self.boot <= other.boot {
		t.Errorf("the owner was replaced: %v, and has the boot id %d, want one above %d", owner.core.replaced, owner.core.self.boot, other.boot)
	}
	for _, n := range w.nodes {
		if p := n.core.peers["n3"]; n != owner && (p.state != Alive || p.address != owner.core.self.address) {
			t.Errorf("%s knows n3 as %v at %s", n.name, p.state, p.address)
		}
	}
}

// TestWrongDeath: flaw C-F8. A healthy node that was declared dead is alive again for all,
// soon after a claim about it has spread.
func TestWrongDeath(t *testing.T) {
	w := cluster(t, 5, 10, Config{Profile: ProfileDocument})
	w.run(5 * time.Second)
	victim := w.nodes[4].core.self.record
	victim.status = statusDead
	payload := appendMessage(nil, &message{kind: kindGossip, boot: w.nodes[1].core.self.boot, records: []record{victim}})
	for _, n := range w.nodes[:9] {
		if n.name != "n5" && n.name != "n2" {
			if err := n.core.Step(n.age(), "n2", payload); err != nil {
				t.Fatal(err)
			}
			if n.stateOf("n5") != Dead {
				t.Fatal("the claim had no effect")
			}
			n.effects()
		}
	}
	w.until("n5 is alive", 5*time.Second, func() bool { return w.agree(Alive, w.nodes...) })
	if got := w.nodes[4].core.stats.Refutations; got == 0 {
		t.Error("n5 refuted nothing")
	}
}

// TestFullList: claims about invented names fill the list up to its limit, and then are
// dropped and counted. Members that have left make room.
func TestFullList(t *testing.T) {
	w := cluster(t, 6, 3, Config{})
	c := w.nodes[0].core
	learn := func(i int, s status) bool {
		return c.learn(&record{name: fmt.Sprintf("x%d", i), boot: 1, status: s})
	}
	for i := range membersMax - 2 {
		if !learn(i, statusAlive) {
			t.Fatal("a claim was dropped before the list was full")
		}
	}
	if learn(membersMax, statusAlive) || c.stats.Full != 1 {
		t.Errorf("a claim for a full list was accepted; %d counted", c.stats.Full)
	}
	learn(5, statusLeft)
	if !learn(membersMax, statusAlive) || c.peers["x5"] != nil {
		t.Error("a member that has left did not make room")
	}
	c.Take()
}

// TestRelayLimit: requests to probe other nodes are limited.
func TestRelayLimit(t *testing.T) {
	w := cluster(t, 7, 3, Config{})
	c := w.nodes[0].core
	for i := range relaysMax + 10 {
		c.startRelay(c.peers["n2"], &message{boot: 1, sequence: uint64(i), target: "n3", within: time.Second})
	}
	if len(c.relays) != relaysMax || c.stats.RelaysFull != 10 {
		t.Errorf("%d relays, %d dropped", len(c.relays), c.stats.RelaysFull)
	}
	c.Take()
}

// TestForgottenTogether: a member is not forgotten by one node and then learned from
// another one, because claims carry their age.
func TestForgottenTogether(t *testing.T) {
	w := cluster(t, 8, 6, Config{ForgetDead: time.Minute})
	w.run(5 * time.Second)
	w.nodes[5].kill()
	forgotten := make(map[string]int)
	w.onEvent = func(n *simNode, e Event) {
		if e.Kind == EventForgotten {
			forgotten[n.name]++
		}
	}
	w.run(30 * time.Second)
	late := w.add("n7", Config{ForgetDead: time.Minute}, "n1")
	late.boot() // learns about the dead node late
	w.run(2 * time.Minute)
	for _, n := range slices.Concat(w.nodes[:5], []*simNode{late}) {
		if forgotten[n.name] != 1 || n.core.peers["n6"] != nil {
			t.Errorf("%s has forgotten n6 %d times", n.name, forgotten[n.name])
		}
	}
}

// TestMinorityForgetsNone: a node that reaches no majority does not forget the dead, so that
// it never counts itself as a majority.
func TestMinorityForgetsNone(t *testing.T) {
	w := newWorld(t, 9)
	for i := range 6 { // the last three are not first members
		w.add(fmt.Sprintf("n%d", i+1), Config{ForgetDead: time.Minute}, "n1", "n2", "n3")
		w.nodes[i].boot()
	}
	w.until("all know all", 20*time.Second, func() bool { return w.agree(Alive, w.nodes...) })
	w.split(w.nodes[:2], w.nodes[2:], true)
	w.run(10 * time.Minute)
	for i, n := range w.nodes {
		if n.core.Fenced() != (i < 2) {
			t.Errorf("%s: fenced %v", n.name, n.core.Fenced())
		}
	}
	w.net.Heal()
	w.until("all know all", time.Minute, func() bool { return w.agree(Alive, w.nodes...) })
}
