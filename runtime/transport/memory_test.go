package transport_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/runtime/transport"
)

var group = transport.GroupID("bank", "ledger")

func join(t testing.TB, m *transport.Memory, name string) transport.Transport {
	t.Helper()
	n, err := m.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func number(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

func TestGroupID(t *testing.T) {
	// The same on every host and in every release.
	if got, want := transport.GroupID("bank", "ledger"), uint64(0xef47e551655ad1c7); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
	if transport.GroupID("a", "bc") == transport.GroupID("ab", "c") {
		t.Error("the border between the names has no effect")
	}
}

// TestMemoryCarries: all messages arrive, in order, between all pairs and for two
// groups.
func TestMemoryCarries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 10_000
		m := transport.NewMemory(transport.MemoryOptions{})
		names := []string{"a", "b", "c"}
		var nodes []transport.Transport
		next := make(map[string]int) // by receiver, sender and group
		var mu sync.Mutex
		for _, name := range names {
			n := join(t, m, name)
			nodes = append(nodes, n)
			for g := range uint64(2) {
				n.Handle(g, func(from string, payloads [][]byte) {
					mu.Lock()
					defer mu.Unlock()
					key := fmt.Sprint(name, from, g)
					for _, p := range payloads {
						if got := int(binary.BigEndian.Uint64(p)); got != next[key] {
							t.Errorf("%s: %d, want %d", key, got, next[key])
						}
						next[key]++
					}
				})
			}
		}
		for from := 0; from < count; from += 1000 { // so that no queue overflows
			for i, n := range nodes {
				go func() {
					for k := from; k < from+1000; k++ {
						for j, to := range names {
							if i != j {
								n.Send(to, transport.Message{Group: 0, Payload: number(k)}, transport.Message{Group: 1, Payload: number(k)})
							}
						}
					}
				}()
			}
			synctest.Wait()
		}
		var all transport.Traffic
		for _, n := range nodes {
			s := n.Stats()
			all.Add(s.Traffic)
			for _, p := range s.Peers {
				if p.Queued != 0 || !p.Connected {
					t.Errorf("%+v", p)
				}
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		want := uint64(3 * 2 * 2 * count)
		if all.Sent != want || all.Received != want || all.Dropped+all.Unclaimed != 0 || all.ReceivedBytes != 8*want {
			t.Errorf("%+v, want %d", all, want)
		}
	})
}

// TestMemoryIsBounded: a slow receiver gets the messages that fit the queue, and the
// rest is counted.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMemory(transport.MemoryOptions{QueueMessages: 10, QueueBytes: 50})
		a, b := join(t, m, "a"), join(t, m, "b")
		gate := make(chan struct{})
		var got atomic.Int64
		b.Handle(group, func(_ string, payloads [][]byte) {
			<-gate
			got.Add(int64(len(payloads)))
		})
		send := func(size int) {
			a.Send("b", transport.Message{Group: group, Payload: make([]byte, size)})
			synctest.Wait()
		}
		for range 15 {
			send(0)
		}
		if s := a.Stats(); s.Dropped != 5 || s.Peers[0].Queued != 10 {
			t.Errorf("%+v", s)
		}
		close(gate)
		synctest.Wait()
		gate = make(chan struct{})
		send(100) // accepted, because it is alone
		send(1)
		if s := a.Stats(); s.Dropped != 6 || s.Peers[0].Queued != 1 {
			t.Errorf("%+v", s)
		}
		close(gate)
		synctest.Wait()
		if s := a.Stats(); s.Sent != 11 || got.Load() != 11 || s.Peers[0].Queued != 0 {
			t.Errorf("%+v, received %d", s, got.Load())
		}
		gate = make(chan struct{})
		for range 3 {
			send(0)
		}
		a.RemovePeer("b") // drops the two that b has not begun to receive
		if s := a.Stats(); s.Dropped != 8 {
			t.Errorf("%+v", s)
		}
		close(gate)
		a.Close()
		b.Close()
	})
}

func TestMemoryCountsWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMemory(transport.MemoryOptions{})
		a, b := join(t, m, "a"), join(t, m, "b")
		if _, err := m.Join("a"); err == nil {
			t.Error("two nodes with one name")
		}
		b.Handle(group, func(string, [][]byte) {})
		dropped := uint64(0)
		send := func(to string, arrives bool) {
			t.Helper()
			before := b.Stats().Received
			a.Send(to, transport.Message{Group: group, Payload: number(1)})
			synctest.Wait()
			if got := b.Stats().Received > before; got != arrives {
				t.Errorf("to %s arrives: %v", to, got)
			}
			if !arrives {
				dropped++
			}
			if s := a.Stats(); s.Dropped != dropped {
				t.Errorf("to %s: %d dropped, want %d", to, s.Dropped, dropped)
			}
		}
		send("b", true)
		send("nobody", false)
		send("a", false)
		m.Cut("a", "b", true)
		send("b", false)
		m.Cut("a", "b", false)
		send("b", true)
		a.RemovePeer("b")
		send("b", false)
		a.SetPeer("b", "anywhere")
		send("b", true)

		a.Send("b", transport.Message{Group: 7, Payload: number(1)})
		synctest.Wait()
		if s := b.Stats(); s.Unclaimed != 1 {
			t.Errorf("%+v", s)
		}
		b.Handle(group, nil)
		a.Send("b", transport.Message{Group: group, Payload: number(1)})
		synctest.Wait()
		if s := b.Stats(); s.Unclaimed != 2 {
			t.Errorf("%+v", s)
		}

		b.Close()
		a.Send("b", transport.Message{Group: group, Payload: number(1)})
		synctest.Wait()
		if s := a.Stats(); s.Dropped != dropped+1 {
			t.Errorf("%+v", s)
		}
		b = join(t, m, "b") // restarted
		b.Handle(group, func(string, [][]byte) {})
		dropped++
		send("b", true)
		b.Close()
		a.Close()
		a.Close()
		a.Send("b", transport.Message{Group: group})
		if s := a.Stats(); s.Dropped != dropped+1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestMemoryCloseWaits: Close waits for a receive that runs.
func TestMemoryCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := transport.NewMemory(transport.MemoryOptions{})
		a, b := join(t, m, "a"), join(t, m, "b")
		gate := make(chan struct{})
		var receiving atomic.Bool
		b.Handle(group, func(string, [][]byte) {
			receiving.Store(true)
			<-gate
			receiving.Store(false)
		})
		a.Send("b", transport.Message{Group: group})
		synctest.Wait()
		if !receiving.Load() {
			t.Fatal("the message was not received")
		}
		closed := make(chan struct{})
		go func() { b.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed while a receive runs")
		default:
		}
		close(gate)
		<-closed
		if receiving.Load() {
			t.Error("closed while a receive runs")
		}
		a.Close()
	})
}

// BenchmarkMemory sends messages of 64 bytes in one direction, 64 in a call, never more
// than the queue holds.
func BenchmarkMemory(b *testing.B) {
	m := transport.NewMemory(transport.MemoryOptions{})
	from, to := join(b, m, "a"), join(b, m, "b")
	defer from.Close()
	defer to.Close()
	const window, each = 8192, 64
	room := make(chan struct{}, window/each)
	received := 0
	to.Handle(group, func(_ string, payloads [][]byte) {
		for range payloads {
			if received++; received%each == 0 {
				<-room
			}
		}
	})
	batch := make([]transport.Message, each)
	payload := make([]byte, 64)
	for i := range batch {
		batch[i] = transport.Message{Group: group, Payload: payload}
	}
	b.ReportAllocs()
	for b.Loop() {
		room <- struct{}{}
		from.Send("b", batch...)
	}
	for range cap(room) {
		room <- struct{}{} // all have arrived
	}
	b.ReportMetric(float64(b.N)*each/b.Elapsed().Seconds(), "messages/s")
}
