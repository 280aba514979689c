package transport_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport"
)

// TestTurns: urgent messages go first, and every class that always has messages gets
// turns.
func TestTurns(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		var turns transport.Turns
		always := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, "always") // by class
		waited := [transport.Classes]int{}
		for range 500 {
			ready := [transport.Classes]bool{}
			for c := range ready {
				ready[c] = always[c] || rapid.IntRange(0, 3).Draw(t, "ready") == 0
			}
			if !slices.Contains(ready[:], true) {
				continue
			}
			c := turns.Next(ready[transport.Urgent], ready[transport.Ordered], ready[transport.Bulk])
			if !ready[c] {
				t.Fatalf("a turn of class %d, which has no messages: %v", c, ready)
			}
			if c == transport.Ordered && ready[transport.Urgent] && waited[c] < 8 || c == transport.Bulk && (ready[transport.Urgent] || ready[transport.Ordered]) && waited[c] < 15 {
				t.Fatalf("class %d goes before others after it has waited for only %d frames", c, waited[c])
			}
			for other := range waited {
				if waited[other]++; !ready[other] || transport.Class(other) == c {
					waited[other] = 0
				}
			}
			for other, most := range [transport.Classes]int{transport.Ordered: 10, transport.Urgent: 2, transport.Bulk: 15} {
				if waited[other] > most {
					t.Fatalf("class %d has waited for %d frames", other, waited[other])
				}
			}
		}
	})
}

// TestQuota: each group and class has its own room, and a message that is too large may
// be queued alone.
func TestQuota(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		const messages, bytes = 5, 20
		q := transport.NewQuota(messages, bytes)
		waiting := map[string][]transport.Message{}
		all := 0
		for range 200 {
			m := transport.Message{
				Group: rapid.Uint64Range(0, 2).Draw(t, "group"), Class: transport.Class(rapid.IntRange(0, 2).Draw(t, "class")),
				Payload: make([]byte, rapid.IntRange(0, 25).Draw(t, "size")),
			}
			key := fmt.Sprint(m.Group, m.Class)
			if rapid.Bool().Draw(t, "give") {
				if n := len(waiting[key]); n > 0 {
					n = rapid.IntRange(1, n).Draw(t, "n")
					q.Give(waiting[key][:n]...)
					waiting[key] = waiting[key][n:]
					all -= n
				}
				continue
			}
			size := len(m.Payload)
			for _, other := range waiting[key] {
				size += len(other.Payload)
			}
			want := len(waiting[key]) == 0 || len(waiting[key]) < messages && size <= bytes
			if got := q.Take(&m); got != want {
				t.Fatalf("accepted: %t, with %d messages and %d bytes in the queue", got, len(waiting[key]), size)
			}
			if want {
				waiting[key] = append(waiting[key], m)
				all++
			}
			if q.Waiting() != all {
				t.Fatalf("%d messages queued, want %d", q.Waiting(), all)
			}
		}
	})
}

// TestMemoryClasses: urgent messages overtake all queued messages. All others overtake
// bulk messages, except for one turn in bulkEvery.
func TestMemoryClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMemory(transport.MemoryOptions{})
		a, b := join(t, m, "a"), join(t, m, "b")
		gate := make(chan struct{})
		var got []int
		b.Handle(group, func(_ string, payloads [][]byte) {
			<-gate
			for _, p := range payloads {
				got = append(got, int(binary.BigEndian.Uint64(p)))
			}
		})
		send := func(class transport.Class, from, n int) {
			for i := range n {
				a.Send("b", transport.Message{Group: group, Payload: number(from + i), Class: class})
			}
		}
		const ordered, urgent, bulk = 0, 1 << 20, 2 << 20
		send(transport.Ordered, ordered, 1)
		synctest.Wait() // the message is being received
		send(transport.Bulk, bulk, 4)
		send(transport.Ordered, ordered+1, 16_000)
		send(transport.Urgent, urgent, 10)
		close(gate)
		synctest.Wait()

		if len(got) != 1+4+16_000+10 {
			t.Fatalf("%d messages arrived", len(got))
		}
		if got[0] != ordered || got[1] != urgent || got[10] != urgent+9 {
			t.Errorf("the first are %v", got[:12])
		}
		var bulkAt []int
		for class, from := range []int{ordered, urgent, bulk} {
			next := from
			for i, n := range got {
				if n>>20 != class {
					continue
				}
				if n != next {
					t.Fatalf("class %d: got %d, want %d", class, n, next)
				}
				next++
				if class == int(transport.Bulk) {
					bulkAt = append(bulkAt, i)
				}
			}
		}
		if bulkAt[0] < 5_000 || bulkAt[0] > 10_000 || bulkAt[3] != len(got)-1 {
			t.Errorf("bulk messages are at %v of %d", bulkAt, len(got))
		}
		a.Close()
		b.Close()
	})
}

// TestMemoryKnowsAddresses: PeerAddress works for nodes that have sent a message.
func TestMemoryKnowsAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMemory(transport.MemoryOptions{})
		a, b := join(t, m, "a"), join(t, m, "b")
		if _, ok := b.PeerAddress("a"); ok {
			t.Error("a node that has sent nothing has an address")
		}
		a.Send("b", transport.Message{Group: group})
		synctest.Wait()
		if address, ok := b.PeerAddress("a"); !ok || address != "a" {
			t.Errorf("%q, %t", address, ok)
		}
		if _, ok := a.PeerAddress("b"); ok {
			t.Error("a node that has only received a message has an address")
		}
		a.Close()
		b.Close()
	})
}

// TestNetworkOrder: an ordered network keeps the order of the messages of a class, with
// all faults. A bulk message arrives after all earlier messages except urgent ones.
func TestNetworkOrder(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		n := transport.NewNetwork[int](rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
			transport.Faults{Loss: 0.1, DelayMin: 1, DelayMax: 50, Ordered: true})
		class := make([]transport.Class, 300)
		for i := range class {
			class[i] = transport.Class(rapid.IntRange(0, 2).Draw(t, "class"))
			n.SendAs(int64(i/2), 1, 2, class[i], i)
		}
		newest := [transport.Classes]int{-1, -1, -1}
		overtaken := 0
		arrived := map[int]bool{}
		for {
			now, ok := n.Next()
			if !ok {
				break
			}
			_, _, i, _ := n.Deliver(now)
			c := class[i]
			if i < newest[c] {
				t.Fatalf("class %d: %d after %d", c, i, newest[c])
			}
			if c == transport.Ordered && i < newest[transport.Bulk] {
				t.Fatalf("%d arrived after %d, which is a later bulk message", i, newest[transport.Bulk])
			}
			if i < slices.Max(newest[:]) {
				overtaken++
			}
			newest[c] = i
			arrived[i] = true
		}
		if overtaken == 0 || len(arrived) < 200 {
			t.Fatalf("%d messages arrived, %d were overtaken", len(arrived), overtaken)
		}
	})
}

// TestNetworkChanceIsTheSame: random losses and delays are the same for all classes,
// with and without order.
func TestNetworkChanceIsTheSame(t *testing.T) {
	run := func(class transport.Class, ordered bool) (lost []int, stats transport.NetworkStats) {
		n := network(5, transport.Faults{Loss: 0.3, Duplicate: 0.2, DelayMin: 1, DelayMax: 30, Ordered: ordered})
		seen := map[int]bool{}
		for i := range 300 {
			n.SendAs(int64(i), 1, 2, class, i)
		}
		for now, ok := n.Next(); ok; now, ok = n.Next() {
			_, _, i, _ := n.Deliver(now)
			seen[i] = true
		}
		for i := range 300 {
			if !seen[i] {
				lost = append(lost, i)
			}
		}
		return lost, n.Stats()
	}
	want, stats := run(transport.Ordered, false)
	for _, class := range []transport.Class{transport.Ordered, transport.Urgent, transport.Bulk, 200} {
		if lost, s := run(class, true); !slices.Equal(lost, want) || s != stats || len(lost) == 0 {
			t.Errorf("class %d: lost %v, %+v, want %v, %+v", class, lost, s, want, stats)
		}
	}
}
