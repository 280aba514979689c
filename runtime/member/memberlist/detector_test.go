package memberlist

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// running is a detector with its transport and the events that it has reported.
type running struct {
	*Detector
	transport transport.Transport
	mu        sync.Mutex
	events    string
}

func (r *running) reported(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.events, event+";")
}

func (r *running) states() string {
	var list []string
	for _, m := range r.Members() {
		list = append(list, fmt.Sprintf("%s %v", m.Name, m.State))
	}
	return strings.Join(list, ", ")
}

func start(t *testing.T, memory *transport.Memory, name string, first ...string) *running {
	t.Helper()
	tr, err := memory.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{transport: tr}
	addresses := make(map[string]string)
	for _, f := range first {
		addresses[f] = f + ":1"
	}
	r.Detector, err = New(member.Settings{
		Node: member.Node{Name: name, Address: name + ":1", Meta: []byte("of " + name)}, First: addresses,
		Transport: tr, Group: transport.GroupID("test", "member"),
		Observe: func(e member.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events += fmt.Sprintf("%s %v;", e.Member.Name, e.Kind)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *running) end(t *testing.T) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.transport.Close(); err != nil {
		t.Error(err)
	}
}

// TestDetector runs three nodes with the clock of a bubble. One joins by asking a first
// member, is cut off, returns, and leaves.
func TestDetector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		n1, n2, n3 := start(t, memory, "n1", "n1"), start(t, memory, "n2", "n1"), start(t, memory, "n3", "n1")
		all := []*running{n1, n2, n3}
		time.Sleep(10 * time.Second)
		for _, n := range all {
			if got := n.states(); got != "n1 alive, n2 alive, n3 alive" || n.Fenced() {
				t.Errorf("%s knows %s, fenced %v", n.settings.Node.Name, got, n.Fenced())
			}
		}
		if m := n1.Members()[2]; m.Address != "n3:1" || string(m.Meta) != "of n3" || m.Boot != n3.settings.Node.Boot {
			t.Errorf("n1 knows %+v", m)
		}

		for _, other := range []string{"n1", "n2"} {
			memory.Cut(other, "n3", true)
			memory.Cut("n3", other, true)
		}
		time.Sleep(60 * time.Second)
		if got := n1.states(); got != "n1 alive, n2 alive, n3 dead" || n1.Fenced() {
			t.Errorf("n1 knows %s, fenced %v", got, n1.Fenced())
		}
		if !n3.Fenced() {
			t.Error("n3 is alone and not fenced")
		}

		for _, other := range []string{"n1", "n2"} {
			memory.Cut(other, "n3", false)
			memory.Cut("n3", other, false)
		}
		time.Sleep(60 * time.Second)
		for _, n := range all {
			if got := n.states(); got != "n1 alive, n2 alive, n3 alive" || n.Fenced() {
				t.Errorf("%s knows %s, fenced %v", n.settings.Node.Name, got, n.Fenced())
			}
		}

		if err := n3.Leave(t.Context()); err != nil {
			t.Error(err)
		}
		n3.end(t)
		time.Sleep(10 * time.Second)
		if got := n1.states(); got != "n1 alive, n2 alive, n3 left" {
			t.Errorf("n1 knows %s", got)
		}
		for _, event := range []string{"n2 joined", "n3 joined", "n3 dead", "n3 alive", "n3 left"} {
			if !n1.reported(event) {
				t.Errorf("n1 did not report %q: %s", event, n1.events)
			}
		}
		n1.end(t)
		n2.end(t)
		time.Sleep(time.Minute) // the library does not wait for its goroutines
	})
}

// TestCloseBeforeLeave: Leave returns when its context ends, and the library may then be shut down
// before the goroutine of Leave calls it.
func TestCloseBeforeLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		n1, n2 := start(t, memory, "n1", "n1"), start(t, memory, "n2", "n1")
		time.Sleep(10 * time.Second)
		n2.end(t)
		if err := n2.leave(n2.list); !errors.Is(err, member.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		n1.end(t)
		time.Sleep(10 * time.Second) // the library's probes end
	})
}

// TestLeaveDoesNotWait: Leave takes no time if no other member is alive, and ends with Close.
func TestLeaveDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		n1, n2 := start(t, memory, "n1", "n1"), start(t, memory, "n2", "n1")
		time.Sleep(10 * time.Second)
		began, left := time.Now(), make(chan error)
		go func() { left <- n2.Leave(t.Context()) }()
		synctest.Wait()
		n2.end(t)
		if err := <-left; !errors.Is(err, member.ErrClosed) || time.Since(began) > 0 {
			t.Errorf("Leave of a node that was closed returned %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute) // n2 is dead
		began = time.Now()
		if err := n1.Leave(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("Leave of the only member returned %v after %v", err, time.Since(began))
		}
		n1.end(t)
		time.Sleep(time.Minute) // the library does not wait for its goroutines
	})
}

// TestMalformedSegments: a peer cannot open more streams than allowed, and malformed
// segments have no effect.
func TestMalformedSegments(t *testing.T) {
	memory := transport.NewMemory(transport.MemoryOptions{})
	tr, err := memory.Join("n1")
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork("n1", tr, 7, slog.New(slog.DiscardHandler))
	n.receive("n2", [][]byte{nil, {payloadStream}, {payloadPacket}, {9, 9, 9}, append([]byte{payloadStream}, make([]byte, segmentHeader+segmentMax+1)...)})
	if len(n.streams) != 0 || len(n.packets) != 0 {
		t.Errorf("%d streams and %d packets of malformed messages", len(n.streams), len(n.packets))
	}
	for peer := range streamsMax/peerMax + 2 {
		for i := range streamsMax + 10 {
			segment := append([]byte{payloadStream, flagOpened}, make([]byte, 12)...)
			segment[9] = byte(i)
			n.receive(fmt.Sprintf("n%d", peer+2), [][]byte{segment})
		}
		if want := min((peer+1)*peerMax, streamsMax); len(n.accepted) != want {
			t.Errorf("%d streams of %d peers were accepted, want %d", len(n.accepted), peer+1, want)
		}
	}
	if err := n.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

func TestMeta(t *testing.T) {
	n := member.Node{Address: "host:1", Meta: []byte("disks"), Boot: 77}
	got, err := parseMeta(appendMeta(nil, &n))
	if err != nil || got.Address != n.Address || string(got.Meta) != "disks" || got.Boot != 77 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, b := range [][]byte{nil, make([]byte, 9), append(make([]byte, 8), 0xff, 0xff), make([]byte, 2000)} {
		if _, err := parseMeta(b); err == nil {
			t.Errorf("%d bytes were accepted", len(b))
		}
	}
}
