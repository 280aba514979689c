package member_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport"
)

// running is a detector with the events that it has reported.
type running struct {
	member.Detector
	transport transport.Transport
	mu        sync.Mutex
	events    []string
}

func (r *running) observe(e member.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %v", e.Member.Name, e.Kind))
}

func (r *running) reported(event string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.events, event)
}

// states returns what a node knows, such as "n1 alive, n2 dead".
func (r *running) states() string {
	var list []string
	for _, m := range r.Members() {
		list = append(list, fmt.Sprintf("%s %v", m.Name, m.State))
	}
	return strings.Join(list, ", ")
}

func start(t *testing.T, memory *transport.Memory, name string, c member.Config, first ...string) *running {
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
	r.Detector, err = member.New(member.Settings{
		Node: member.Node{Name: name, Address: name + ":1"}, First: addresses, Config: c,
		Transport: tr, Group: transport.GroupID("test", "member"), Observe: r.observe,
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

// TestDetector runs three nodes with the clock of a bubble: one fails and returns, and
// one leaves.
func TestDetector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		nodes := make(map[string]*running)
		for _, name := range []string{"n1", "n2", "n3"} {
			nodes[name] = start(t, memory, name, member.Config{}, "n1", "n2", "n3")
		}
		time.Sleep(5 * time.Second)
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			if got := nodes[name].states(); got != "n1 alive, n2 alive, n3 alive" || nodes[name].Fenced() {
				t.Errorf("%s knows %s, fenced %v", name, got, nodes[name].Fenced())
			}
		}

		for _, name := range []string{"n1", "n2"} {
			memory.Cut(name, "n3", true)
			memory.Cut("n3", name, true)
		}
		time.Sleep(20 * time.Second)
		if got := nodes["n1"].states(); got != "n1 alive, n2 alive, n3 dead" || nodes["n1"].Fenced() {
			t.Errorf("n1 knows %s, fenced %v", got, nodes["n1"].Fenced())
		}
		if !nodes["n3"].Fenced() {
			t.Errorf("n3 is alone and not fenced")
		}

		for _, name := range []string{"n1", "n2"} {
			memory.Cut(name, "n3", false)
			memory.Cut("n3", name, false)
		}
		time.Sleep(10 * time.Second)
		for name, n := range nodes {
			if got := n.states(); got != "n1 alive, n2 alive, n3 alive" || n.Fenced() {
				t.Errorf("%s knows %s, fenced %v", name, got, n.Fenced())
			}
		}

		if err := nodes["n2"].Leave(t.Context()); err != nil {
			t.Errorf("leave: %v", err)
		}
		nodes["n2"].end(t)
		time.Sleep(5 * time.Second)
		if got := nodes["n1"].states(); got != "n1 alive, n2 left, n3 alive" || nodes["n1"].Fenced() {
			t.Errorf("n1 knows %s, fenced %v", got, nodes["n1"].Fenced())
		}
		for _, event := range []string{"n3 suspected", "n3 dead", "n3 alive", "n2 left"} {
			if !nodes["n1"].reported(event) {
				t.Errorf("n1 did not report %q: %v", event, nodes["n1"].events)
			}
		}
		for _, event := range []string{"n3 fenced", "n3 unfenced"} {
			if !nodes["n3"].reported(event) {
				t.Errorf("n3 did not report %q: %v", event, nodes["n3"].events)
			}
		}
		nodes["n1"].end(t)
		nodes["n3"].end(t)
	})
}

// TestHeardKeepsAlive: messages of the data path are signs of life although all messages
// of failure detection are lost.
func TestHeardKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		a := start(t, memory, "n1", member.Config{Fence: member.FenceOff}, "n1", "n2")
		b := start(t, memory, "n2", member.Config{Fence: member.FenceOff}, "n1", "n2")
		time.Sleep(5 * time.Second)
		memory.Cut("n1", "n2", true)
		memory.Cut("n2", "n1", true)
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			a.Heard("n2")
		}
		if a.reported("n2 dead") {
			t.Errorf("n1 reported %v", a.events)
		}
		time.Sleep(20 * time.Second)
		if !a.reported("n2 dead") {
			t.Errorf("n1 did not report that n2 is dead: %v", a.events)
		}
		a.end(t)
		b.end(t)
	})
}

// TestLeaveEnds: Leave returns the error of its context if no member confirms.
func TestLeaveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		a := start(t, memory, "n1", member.Config{Fence: member.FenceOff}, "n1", "n2")
		b := start(t, memory, "n2", member.Config{Fence: member.FenceOff}, "n1", "n2")
		time.Sleep(5 * time.Second)
		memory.Cut("n1", "n2", true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Leave(ctx); err == nil {
			t.Error("Leave succeeded without an answer")
		}
		a.end(t)
		b.end(t)
	})
}

// peers notes the peers of a transport.
type peers struct {
	transport.Transport
	mu   sync.Mutex
	list map[string]bool
}

func (p *peers) SetPeer(name, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list[name] = true
	p.Transport.SetPeer(name, address)
}

func (p *peers) RemovePeer(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.list, name)
	p.Transport.RemovePeer(name)
}

// TestForgottenPeers: a member that was forgotten is not a peer of the transport any more,
// although dead members are pinged now and then.
func TestForgottenPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		tr, err := memory.Join("n1")
		if err != nil {
			t.Fatal(err)
		}
		p := &peers{Transport: tr, list: make(map[string]bool)}
		c := member.Config{Fence: member.FenceOff, ForgetDead: time.Minute}
		d, err := member.New(member.Settings{
			Node: member.Node{Name: "n1", Address: "n1:1"}, First: map[string]string{"n1": "n1:1"}, Config: c,
			Transport: p, Group: transport.GroupID("test", "member"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		other := start(t, memory, "n2", c, "n1") // two of three nodes are a majority
		for i := range 20 {
			guest := start(t, memory, fmt.Sprint("guest", i), c, "n1")
			time.Sleep(5 * time.Second)
			guest.end(t)
			time.Sleep(2 * time.Minute)
			if got := len(d.Members()); got != 2 {
				t.Errorf("n1 has %d members, want itself and n2", got)
			}
		}
		other.end(t)
		p.mu.Lock()
		if len(p.list) != 1 || !p.list["n2"] {
			t.Errorf("the transport has the peers %v, want n2", slices.Sorted(maps.Keys(p.list)))
		}
		p.mu.Unlock()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Remove("guest1"); !errors.Is(err, member.ErrClosed) {
			t.Errorf("Remove after Close returned %v, want ErrClosed", err)
		}
		if err := d.Leave(t.Context()); !errors.Is(err, member.ErrClosed) {
			t.Errorf("Leave after Close returned %v, want ErrClosed", err)
		}
	})
}

// TestPeerRemovedByItsOwner: the owner of the transport removes the peer of a member that has left.
// When its next process joins, the transport gets the address again.
func TestPeerRemovedByItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := transport.NewMemory(transport.MemoryOptions{})
		tr, err := memory.Join("n1")
		if err != nil {
			t.Fatal(err)
		}
		p := &peers{Transport: tr, list: make(map[string]bool)}
		c := member.Config{Fence: member.FenceOff}
		d, err := member.New(member.Settings{
			Node: member.Node{Name: "n1", Address: "n1:1"}, First: map[string]string{"n1": "n1:1"}, Config: c,
			Transport: p, Group: transport.GroupID("test", "member"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		state := func() string {
			for _, m := range d.Members() {
				if m.Name == "n2" {
					return m.State.String()
				}
			}
			return ""
		}
		for range 2 {
			other := start(t, memory, "n2", c, "n1")
			time.Sleep(time.Minute)
			if got := state(); got != "alive" {
				t.Errorf("n2 is %s", got)
			}
			if err := other.Leave(t.Context()); err != nil {
				t.Error(err)
			}
			other.end(t)
			time.Sleep(time.Minute)
			if got := state(); got != "left" {
				t.Errorf("n2 is %s after it has left", got)
			}
			p.RemovePeer("n2")
		}
		if err := errors.Join(d.Close(), tr.Close()); err != nil {
			t.Error(err)
		}
	})
}
