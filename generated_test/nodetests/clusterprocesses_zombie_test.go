package nodetests_test

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/topogen/topogen/generated_test/clusterprocesses"
	"github.com/topogen/topogen/internal/test/loopback"
)

// TestClusterProcessesZombie replaces a process that was stopped with SIGSTOP in the middle of its writes to a store. The
// store is in this process. It refuses a fencing token that is lower than another token of the same instance. The first
// process then continues, and the store must refuse its writes. The first process has old counters in memory, so a write
// that the store accepts changes a counter to an old value.
func TestClusterProcessesZombie(t *testing.T) {
	t.Parallel() // it waits until the connections of the stopped process end
	s := newTokenStore(t)
	env := []string{variableLinks + "=" + direct, clusterprocesses.VariableStore + "=" + s.listener.Addr().String()}
	c := start(t, env...)
	const one = 2
	first := c.nodes[one]
	s.hold(first.cmd.Process.Pid)
	c.await("writes of all workers of the process that will be stopped", func() bool { return s.heldInstances() == 12/fleetNodes })
	c.signal(first, syscall.SIGSTOP)
	first.killed = true // it ends with an error, and has confirmed less than it has handled
	for i := range fleetNodes {
		if i != one {
			c.awaitDead(i, one)
		}
	}
	second := c.launch(one, append(env, "TOPOGEN_ADDRESS="+loopback.Addresses(c.t, 1)[0], "TOPOGEN_DIR="+c.path("elsewhere"))...)
	c.await("writes of all workers of the second process", func() bool { return s.writers(second.cmd.Process.Pid) == 12/fleetNodes })
	s.release()
	c.signal(first, syscall.SIGCONT)
	if err := c.ended(first); err == nil {
		t.Error("the first process has ended without an error")
	}
	if t.Failed() {
		t.FailNow() // the store has accepted a stale write
	}
	c.awaitEffects()
	c.finish()
	c.checkAll()
	s.check(first.cmd.Process.Pid)
}

// tokenStore is a store outside of the cluster.
type tokenStore struct {
	t        *testing.T
	listener net.Listener

	mu       sync.Mutex
	free     sync.Cond      // held has changed
	held     int            // the process whose writes wait; 0: none
	waiting  map[int]bool   // instances whose writes wait
	highest  map[int]uint64 // token by instance
	counters map[string]int
	accepted map[int]map[int]int // writes by process and instance
	refused  map[int]int         // writes by process
	known    map[[2]int]bool     // processes and instances
	newest   map[int]int         // process by instance
}

func newTokenStore(t *testing.T) *tokenStore {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &tokenStore{t: t, listener: l, waiting: map[int]bool{}, highest: map[int]uint64{}, counters: map[string]int{},
		accepted: map[int]map[int]int{}, refused: map[int]int{}, known: map[[2]int]bool{}, newest: map[int]int{}}
	s.free.L = &s.mu
	t.Cleanup(func() {
		s.release()
		_ = l.Close()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// serve answers the requests of a worker until the connection ends.
func (s *tokenStore) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var what, key string
		var pid, instance, n int
		var token uint64
		if _, err := fmt.Sscan(lines.Text(), &what, &pid, &instance, &token, &key, &n); err != nil || token == 0 {
			s.t.Errorf("the store got the request %q: %v", lines.Text(), err)
			return
		}
		s.mu.Lock()
		for what == "write" && s.held == pid {
			s.waiting[instance] = true
			s.free.Wait()
		}
		if first := [2]int{pid, instance}; !s.known[first] {
			s.known[first], s.newest[instance] = true, pid
		}
		accepted := token >= s.highest[instance]
		if s.highest[instance] = max(s.highest[instance], token); what == "write" {
			s.note(pid, instance, accepted)
			if accepted {
				if s.newest[instance] != pid || n != s.counters[key]+1 {
					s.t.Errorf("the store has accepted the stale write %q: process %d has the instance, and the counter is %d", lines.Text(), s.newest[instance], s.counters[key])
				}
				s.counters[key] = n
			}
		}
		value := s.counters[key]
		s.mu.Unlock()
		if _, err := fmt.Fprintln(conn, value); err != nil {
			return
		}
	}
}

// note counts a write. The lock must be held.
func (s *tokenStore) note(pid, instance int, accepted bool) {
	if !accepted {
		s.refused[pid]++
		return
	}
	if s.accepted[pid] == nil {
		s.accepted[pid] = map[int]int{}
	}
	s.accepted[pid][instance]++
}

// hold makes the writes of a process wait.
func (s *tokenStore) hold(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = pid
}

func (s *tokenStore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = 0
	s.free.Broadcast()
}

func (s *tokenStore) heldInstances() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// writers is the number of instances of a process that have written.
func (s *tokenStore) writers(pid int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted[pid])
}

// check checks that the store has refused writes of the process that was replaced, and no other writes.
func (s *tokenStore) check(replaced int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused[replaced] < 12/fleetNodes || len(s.refused) != 1 {
		s.t.Errorf("the store has refused these numbers of writes by process: %v; it must refuse at least %d writes of process %d, and no others", s.refused, 12/fleetNodes, replaced)
	}
	s.t.Logf("%d writes of the process that was replaced were refused", s.refused[replaced])
}
