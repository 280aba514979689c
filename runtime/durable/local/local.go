package local

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// ErrClosed is the error of operations of a server that was closed.
var ErrClosed = errors.New("local: the server is closed")

// A Server is a server in memory. It implements protocol.Backend and durable.Batcher.
type Server struct {
	core  *core.Core
	now   func() time.Time
	began time.Time

	mu     sync.Mutex
	store  store.Store
	groups map[string]*group
	closed bool
}

// A group has the processes that take messages for an address poll://any@group.
type group struct {
	members []*connection // ordered by pid
	turn    int
	held    []protocol.Message // executes that came while no process was connected
}

// heldMax bounds the messages that a group without processes keeps. The server repeats
// the others.
const heldMax = 10_000

// New returns a Server whose time is now.
func New(c core.Config, now func() time.Time) (*Server, error) {
	machine, err := core.New(c)
	if err != nil {
		return nil, err
	}
	return &Server{core: machine, now: now, began: now().Truncate(time.Millisecond), store: store.NewMemory(), groups: make(map[string]*group)}, nil
}

// Do carries out an operation.
func (s *Server) Do(ctx context.Context, op protocol.Operation) (protocol.Result, error) {
	results, err := s.DoAll(ctx, []protocol.Operation{op})
	if err != nil {
		return protocol.Result{}, err
	}
	return results[0], nil
}

// DoAll carries out operations in their order.
func (s *Server) DoAll(ctx context.Context, ops []protocol.Operation) ([]protocol.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	results := make([]protocol.Result, len(ops))
	for i, op := range ops {
		var err error
		if results[i], err = s.step(op); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// step carries out one operation in a transaction of its own, and sends its messages.
func (s *Server) step(op protocol.Operation) (protocol.Result, error) {
	var result protocol.Result
	var effects []core.Effect
	err := s.store.Update(func(tx store.Tx) error {
		result, effects = s.core.Step(tx, op, s.instant())
		return nil
	})
	for _, effect := range effects {
		if !effect.Dropped {
			s.send(effect.Address, effect.Message)
		}
	}
	return result, err
}

func (s *Server) instant() core.Instant {
	now := s.now()
	return core.Instant{Wall: now.UnixMilli(), Run: now.Sub(s.began).Milliseconds()}
}

// Step processes the timers and leases that are due. It reports whether there were any.
func (s *Server) Step() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.next(); s.closed || !ok || at.After(s.now()) {
		return false
	}
	result, err := s.step(core.Tick{})
	if err != nil || result.Status != protocol.OK {
		panic(fmt.Sprintf("local: a tick failed: %v %s", err, result.Error)) // memory does not fail
	}
	return true
}

// Next is the time at which Step has something to do, and whether there is one.
func (s *Server) Next() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

func (s *Server) next() (at time.Time, ok bool) {
	_ = s.store.View(func(tx store.Tx) error {
		var wait int64
		wait, ok = core.Next(tx, s.instant())
		at = s.now().Truncate(time.Millisecond).Add(time.Duration(wait) * time.Millisecond)
		return nil
	})
	return at, ok
}

// View calls f with what the server stores, for checks.
func (s *Server) View(f func(core.KV, core.Instant)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.store.View(func(tx store.Tx) error {
		f(tx, s.instant())
		return nil
	})
}

// Close ends all connections. Later operations return ErrClosed.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, g := range s.groups {
		for _, c := range slices.Clone(g.members) {
			c.end()
		}
	}
}

// Connect receives the messages for a process of a group. A second connection with the same
// pid replaces the first.
func (s *Server) Connect(groupName, pid string) (protocol.Connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	g := s.group(groupName)
	c := &connection{server: s, group: g, name: groupName, pid: pid, messages: make(chan protocol.Message, 1)}
	i, found := slices.BinarySearchFunc(g.members, pid, func(c *connection, pid string) int { return strings.Compare(c.pid, pid) })
	if found {
		g.members[i].end()
	}
	g.members = slices.Insert(g.members, i, c)
	held := g.held
	g.held = nil
	for _, m := range held {
		c.put(m)
	}
	s.resend(c)
	return c, nil
}

// resend sends the unblock messages that no connection took.
func (s *Server) resend(c *connection) {
	var effects []core.Effect
	_ = s.store.View(func(tx store.Tx) error {
		for _, address := range addressesOf(c.name, c.pid) {
			for effect, err := range core.Unblocks(tx, address) {
				if err != nil {
					return err
				}
				effects = append(effects, effect)
			}
		}
		return nil
	})
	for _, effect := range effects {
		s.send(effect.Address, effect.Message)
	}
}

func (s *Server) group(name string) *group {
	g := s.groups[name]
	if g == nil {
		g = &group{}
		s.groups[name] = g
	}
	return g
}

// send sends a message to an address. A message for another scheme is lost, as if nothing
// listened there.
func (s *Server) send(address string, m protocol.Message) {
	name, pid, anyone, ok := parse(address)
	if !ok {
		return
	}
	g := s.group(name)
	to := g.member(pid)
	if to == nil && anyone && len(g.members) > 0 {
		g.turn = (g.turn + 1) % len(g.members)
		to = g.members[g.turn]
	}
	switch {
	case to == nil && m.Execute != nil && anyone && len(g.held) < heldMax:
		g.held = append(g.held, m)
	case to == nil:
	default:
		to.put(m)
		if m.Unblock != nil {
			if _, err := s.step(core.Delivered{Promise: m.Unblock.ID, Address: address}); err != nil {
				panic(err) // memory does not fail
			}
		}
	}
}

func (g *group) member(pid string) *connection {
	for _, c := range g.members {
		if c.pid == pid {
			return c
		}
	}
	return nil
}

// parse reads an address poll://any@group, poll://any@group/pid or poll://uni@group/pid.
func parse(address string) (group, pid string, anyone, ok bool) {
	rest, ok := strings.CutPrefix(address, "poll://any@")
	if anyone = ok; !ok {
		if rest, ok = strings.CutPrefix(address, "poll://uni@"); !ok {
			return "", "", false, false
		}
	}
	group, pid, _ = strings.Cut(rest, "/")
	group, err := url.PathUnescape(group)
	if err != nil {
		return "", "", false, false
	}
	pid, err = url.PathUnescape(pid)
	return group, pid, anyone, err == nil
}

// addressesOf are the addresses at which a process receives messages.
func addressesOf(group, pid string) []string {
	group, pid = url.PathEscape(group), url.PathEscape(pid)
	return []string{"poll://any@" + group, "poll://any@" + group + "/" + pid, "poll://uni@" + group + "/" + pid}
}
