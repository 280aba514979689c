package raft

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// Machine is a state that is kept on disk or on several machines: what
// `kind: fsm` is with `log` or `raft`. Propose, Read and all that has a context
// may be called by any goroutine, the Receive methods and Answer by generated
// code.
type Machine[S, U any, P fsm.Updater[S, U]] struct {
	config  Config
	state   fsm.Codec[S]
	update  fsm.Codec[U]
	machine *fsm.Replicated[S, U, P]

	scratches sync.Pool // of *scratch[U]

	mu     sync.Mutex
	node   *Node // nil before Start, and under a Stepper
	leave  func() error
	closed bool

	inTopology[S, U, P]
}

// New makes a machine; Start starts it. The codecs write the state and the
// updates, for the log and for others.
func New[S, U any, P fsm.Updater[S, U]](c Config, state fsm.Codec[S], update fsm.Codec[U]) (*Machine[S, U, P], error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Machine[S, U, P]{config: c, state: state, update: update}
	m.machine = fsm.NewReplicated[S, U, P](state, update, fsm.Options{Sessions: c.sessions})
	m.inTopology.m = m
	return m, nil
}

// Start opens the log, restores the state from it, and begins to talk to the
// other members. host is the pool that the machine is a processor of; nil: none.
// It does not wait for a leader.
func (m *Machine[S, U, P]) Start(_ context.Context, host fsm.Host) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return errNodeStopped
	case m.node != nil:
		return errors.New("raft: the machine was started before")
	}
	m.host = host
	if host != nil && host.Stepped() {
		return nil // everything in one goroutine, and in memory
	}
	node, leave, err := openNode(&m.config, m.machine)
	if err != nil {
		return err
	}
	m.node, m.leave = node, leave
	if host != nil {
		go func() {
			<-node.Done()
			host.Wake() // Answer returns the node's error, which ends the topology
		}()
	}
	return nil
}

// openNode opens what a configuration says and starts a node on it. leave ends
// what it shares with others.
func openNode(c *Config, machine StateMachine) (node *Node, leave func() error, err error) {
	log, stored := c.Log, c.Stored
	if log == nil {
		if err := prepareFolder(c); err != nil {
			return nil, nil, err
		}
		id := wal.Identity{Topology: c.Topology, Group: c.Group, Node: MemberID(c.Node), Name: c.Node}
		log, stored, err = wal.Open(c.Dir, id, wal.Options{Sync: c.Sync, Interval: c.SyncInterval, Logger: c.Logger})
		if err != nil {
			return nil, nil, err
		}
	}
	leave = func() error { return nil }
	link := c.Transport
	var shared *shared
	if link == nil && len(c.Peers) > 0 {
		if shared, err = listen(c); err != nil {
			_ = log.Close()
			return nil, nil, err
		}
		link, leave = shared, shared.leave
	}
	peers := c.Peers
	if len(peers) == 0 {
		peers = map[string]string{c.Node: ""}
	}
	node, err = StartNode(NodeConfig{
		Core: CoreConfig{
			Name: c.Node, Peers: peers, Join: c.Join,
			ElectionTicks: int(c.ElectionTimeout / c.Heartbeat), HeartbeatTicks: 1,
			Forward: c.Forward, SnapshotEvery: c.SnapshotEvery, Nonce: nonce(), Stored: stored,
			LeaseTime: c.ElectionTimeout / 2,
		},
		Log: log, Machine: machine, Transport: link, Group: transport.GroupID(c.Topology, c.Group),
		Prefer: c.Prefer, Tick: c.Heartbeat, Logger: c.Logger,
	})
	if err != nil {
		_ = log.Close()
		_ = leave()
		return nil, nil, err
	}
	if link != nil && c.Join {
		for name, address := range c.Peers {
			if name != c.Node {
				link.SetPeer(name, address)
			}
		}
	}
	if shared != nil {
		end := shared.operators.serve(c.Group, node)
		leave = func() error { end(); return shared.leave() }
	}
	return node, leave, nil
}

// nonce is a number at random, but 0.
func nonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// Close stops the machine. What waits for it ends with an error. It returns the
// error that had ended the machine before, if any, unless Answer has.
func (m *Machine[S, U, P]) Close() error {
	m.mu.Lock()
	node, leave := m.node, m.leave
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if node == nil || closed {
		return nil
	}
	err := node.Close()
	return errors.Join(err, leave())
}

// running is the node, or why there is none.
func (m *Machine[S, U, P]) running() (*Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.node == nil:
		return nil, fmt.Errorf("raft: %w", fsm.ErrNotRunning)
	case m.closed:
		return nil, errNodeStopped
	}
	return m.node, nil
}

// Propose applies an update, and returns where in the log it stands; err is also
// in it. It waits for a leader, a majority and room, as long as ctx lives. An
// error is the update's own, or one of package fsm: fsm.OutcomeKnown says
// whether it tells what became of the update.
func (m *Machine[S, U, P]) Propose(ctx context.Context, u U) (fsm.Applied, error) {
	n, err := m.running()
	if err != nil {
		return fsm.Applied{}, err
	}
	c := n.newCall()
	if c.data, err = m.encode(c.data[:0], u); err != nil {
		c.release()
		return fsm.Applied{}, err
	}
	return n.propose(ctx, Update, c)
}

// scratch is room for an update, and for what is read of it.
type scratch[U any] struct{ update, read U }

// encode appends an update to b, and checks that it can be read: in the log, one that
// cannot would end every node.
func (m *Machine[S, U, P]) encode(b []byte, u U) ([]byte, error) {
	s, _ := m.scratches.Get().(*scratch[U])
	if s == nil {
		s = new(scratch[U])
	}
	s.update = u
	begin := len(b)
	b, err := m.update.Encode(b, &s.update, &s.read)
	*s = scratch[U]{}
	m.scratches.Put(s)
	if n := len(b) - begin; err == nil && n > updateBytesMax {
		err = fmt.Errorf("%w: %d bytes, at most %d", fsm.ErrTooLarge, n, updateBytesMax)
	}
	return b, err
}

// updateBytesMax bounds an update: the others wait behind it at each hop.
const updateBytesMax = 16 << 20

// OpenSession opens a session, whose number ProposeAs takes. It is kept with the
// state: as long as it is used more often than some ten thousand others.
func (m *Machine[S, U, P]) OpenSession(ctx context.Context) (session uint64, err error) {
	n, err := m.running()
	if err != nil {
		return 0, err
	}
	key := nonce()
	a, err := n.proposeAs(ctx, key, 0, nil)
	return a.Client, err
}

// ProposeAs is Propose for a client that may ask again, at this node or another,
// after any error and after a crash of its own: the same session and sequence are
// applied once, and answered the same. A client asks for one update after the
// other, with growing numbers from 1 on; an answer is kept until it asks for the
// next.
func (m *Machine[S, U, P]) ProposeAs(ctx context.Context, session, sequence uint64, u U) (fsm.Applied, error) {
	n, err := m.running()
	if err != nil {
		return fsm.Applied{}, err
	}
	if sequence == 0 {
		return fsm.Applied{}, errors.New("raft: sequences begin at 1")
	}
	data, err := m.encode(nil, u)
	if err != nil {
		return fsm.Applied{}, err
	}
	return n.proposeAs(ctx, session, sequence, data)
}

// proposeAs proposes in a client's session.
func (n *Node) proposeAs(ctx context.Context, client, sequence uint64, data []byte) (fsm.Applied, error) {
	if err := n.acquire(ctx); err != nil {
		return fsm.Applied{}, err
	}
	c := &call{slots: n.slots, answer: make(chan struct{}, 1)} // not from the pool: the core compares waiters
	if err := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) {
			if err := core.ProposeAs(client, sequence, sequence, data, c); err != nil {
				c.Done(fsm.Applied{Err: err})
			}
		})
	}); err != nil {
		<-n.slots
		return fsm.Applied{}, err
	}
	return n.await(ctx, c, func(core *Core) bool {
		found, _ := core.AbandonAs(client, sequence, c)
		return found
	})
}

// Read calls f with the state, as it is after all updates that were acknowledged
// before Read was called, on whatever node. f runs on this node while no update
// does, not even the node's own next ones: it is to be quick, must not change the
// state, nor keep what it points to, nor call the machine.
func (m *Machine[S, U, P]) Read(ctx context.Context, f func(*S)) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	return n.read(ctx, false, func() { m.machine.View(f) })
}

// LeaseRead is Read without a question to the majority, where this node leads and a
// majority has answered it within half an election timeout; else it is Read. It relies
// on the members' clocks: none may run twice as fast as another, or stand still while
// its machine is suspended. Where one does, a read may miss what another leader has
// acknowledged meanwhile.
func (m *Machine[S, U, P]) LeaseRead(ctx context.Context, f func(*S)) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	return n.read(ctx, true, func() { m.machine.View(f) })
}

// Wait waits until this node has applied the log up to an index, such as that of an
// update which another node has applied: Stale then sees it.
func (m *Machine[S, U, P]) Wait(ctx context.Context, index uint64) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	return n.wait(ctx, index)
}

// Stale calls f with the state as this node has it: it may lack what others have
// acknowledged. It does not wait for anybody.
func (m *Machine[S, U, P]) Stale(f func(*S)) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	n.state.RLock()
	defer n.state.RUnlock()
	m.machine.View(f)
	return nil
}

// Leader is the leader that this node knows of: a hint, as it may have changed.
func (m *Machine[S, U, P]) Leader() (name string, ok bool) {
	n, err := m.running()
	if err != nil {
		return "", false
	}
	name = n.status.Load().Leader
	return name, name != ""
}

// Status is what the node knows. It waits a heartbeat for the node at most; one
// whose disk hangs is shown as it was.
func (m *Machine[S, U, P]) Status() Status {
	n, err := m.running()
	if err != nil {
		return Status{Node: m.config.Node, Role: "stopped"}
	}
	return n.Status()
}

// Status is what the node knows.
func (n *Node) Status() Status {
	ctx, cancel := context.WithTimeout(context.Background(), max(n.config.Tick, time.Millisecond))
	defer cancel()
	told := make(chan *Status, 1)
	if err := n.do(ctx, func(*Core) { told <- n.tell() }); err != nil {
		s := *n.status.Load()
		s.Age = time.Since(s.at)
		return s
	}
	return *<-told
}

// ChangeMembers changes who belongs to the group, all at once, and returns when
// that is done. Only the leader takes it.
func (m *Machine[S, U, P]) ChangeMembers(ctx context.Context, changes ...Change) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	return n.ChangeMembers(ctx, changes...)
}

// ChangeMembers changes who belongs to the group.
func (n *Node) ChangeMembers(ctx context.Context, changes ...Change) error {
	c := &call{answer: make(chan struct{}, 1)}
	if err := n.put(func(b *inbox) {
		b.calls = append(b.calls, func(core *Core) {
			if err := core.ChangeMembers(changes, c); err != nil {
				c.Done(fsm.Applied{Err: err})
			}
		})
	}); err != nil {
		return err
	}
	select {
	case <-c.answer:
		return c.a.Err
	case <-ctx.Done():
		_ = n.put(func(b *inbox) { b.calls = append(b.calls, func(core *Core) { core.AbandonChange(c) }) })
		return fmt.Errorf("%w: %w", fsm.ErrUnknown, ctx.Err())
	}
}

// TransferLeader makes another member the leader, and returns when it is, or ctx
// ends. A node that does not lead may ask for itself alone.
func (m *Machine[S, U, P]) TransferLeader(ctx context.Context, to string) error {
	n, err := m.running()
	if err != nil {
		return err
	}
	return n.TransferLeader(ctx, to)
}

// TransferLeader makes another member the leader.
func (n *Node) TransferLeader(ctx context.Context, to string) error {
	poll := time.NewTicker(n.config.Tick)
	defer poll.Stop()
	for asked := false; ; {
		var err error
		var leads bool
		if e := n.do(ctx, func(c *Core) {
			leads = c.leader == MemberID(to)
			if !leads && !asked {
				if err = c.TransferLeader(MemberID(to)); errors.Is(err, ErrMembers) {
					err = c.members.noVote(to)
				}
			}
		}); e != nil {
			return e
		}
		switch {
		case leads || err != nil:
			return err
		}
		asked = true
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("raft: %q does not lead yet: %w", to, ctx.Err())
		}
	}
}

// Snapshot takes a snapshot now, and returns the index up to which it holds the log.
func (m *Machine[S, U, P]) Snapshot(ctx context.Context) (index uint64, err error) {
	n, err := m.running()
	if err != nil {
		return 0, err
	}
	return n.Snapshot(ctx)
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot(ctx context.Context) (index uint64, err error) {
	type taken struct {
		index uint64
		err   error
	}
	answer := make(chan taken, 1) // nobody may wait any more
	if err := n.do(ctx, func(c *Core) {
		if applied := n.keeper.applied.Load(); applied == c.SnapshotIndex() {
			answer <- taken{index: applied}
			return
		}
		n.takers = append(n.takers, func(index uint64, err error) { answer <- taken{index, err} })
		n.takeSnapshot()
	}); err != nil {
		return 0, err
	}
	select {
	case at := <-answer:
		return at.index, at.err
	case <-n.done:
		return 0, n.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
