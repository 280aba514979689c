package raft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// StateMachine is what a node applies committed entries to; *fsm.Replicated is
// one. It is called by one goroutine at a time.
type StateMachine interface {
	// Apply takes the data of an entry, and calls result for each command in it. An
	// error says that the entry is damaged, and ends the node.
	Apply(index, term uint64, data []byte, result func(client, sequence uint64, a fsm.Applied)) error
	// AppendSnapshot appends all that Restore needs.
	AppendSnapshot(b []byte) ([]byte, error)
	// Restore takes the place of all that was applied.
	Restore(b []byte) error
}

// NodeConfig is what a Node is made of. Log, Machine and Transport are the
// node's from then on; it closes Log.
type NodeConfig struct {
	Core      CoreConfig
	Log       wal.Log
	Machine   StateMachine
	Transport transport.Transport // nil: there are no others
	Group     uint64              // of the messages in the transport
	Tick      time.Duration
	Logger    *slog.Logger
}

// Node drives a Core, in one goroutine.
type Node struct {
	config NodeConfig
	core   *Core
	logger *slog.Logger

	// state is held for writing while the state machine changes.
	state   sync.RWMutex
	applied func() // called when it has; nil: nobody wants to know

	inbox  inbox
	wake   chan struct{}
	slots  chan struct{} // one for each proposal under way
	asking chan struct{} // one for each read that a goroutine waits for
	status atomic.Pointer[Status]

	stop    chan struct{}
	stopped sync.Once
	done    chan struct{}
	told    atomic.Bool // Err has said why the node has ended
	err     error       // why the node has ended; set before done is closed

	leaderless leaderless
	crowded    bool      // there is more than one who proposes
	held       []Message // see hold
	outgoing   map[uint64][]transport.Message
	order      []uint64 // its keys, in the order of the first message
}

// errNodeStopped ends what waits for a node that was told to stop.
var errNodeStopped = fmt.Errorf("raft: the node was closed: %w", fsm.ErrStopped)

// StartNode starts a node. stored is what the log held when it was opened.
func StartNode(c NodeConfig) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Tick <= 0 {
		return nil, errors.New("raft: a node needs a tick")
	}
	n := &Node{
		config: c, logger: c.Logger, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		outgoing: make(map[uint64][]transport.Message),
	}
	if err := n.prepare(); err != nil {
		return nil, err
	}
	n.slots = make(chan struct{}, n.core.config.PendingMax/2) // the other half is for groups of commands
	n.asking = make(chan struct{}, readsMax)
	n.publish()
	if t := c.Transport; t != nil {
		n.learnPeers(n.core.members.list())
		t.Handle(c.Group, n.receive)
	}
	go n.run()
	return n, nil
}

// prepare makes the core and the state machine what the log says.
func (n *Node) prepare() (err error) {
	c := &n.config.Core
	c.Log = func(level LogLevel, text string) {
		n.logger.Log(context.Background(), level, text, slog.String("node", c.Name))
	}
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixNano() }
	}
	if c.Stored.Snapshot == nil && !c.Join {
		if c.Stored.State.GetTerm() > BootstrapState().GetTerm() {
			return errors.New("raft: the log is of a node that was about to join a group: Config.Join is missing")
		}
		state, err := n.config.Machine.AppendSnapshot(nil)
		if err != nil {
			return fmt.Errorf("raft: the first snapshot: %w", err)
		}
		if c.Stored.Snapshot, err = Bootstrap(c.Peers, state); err != nil {
			return err
		}
		c.Stored.State = BootstrapState()
		if err := n.config.Log.Save(c.Stored.State, nil, true); err != nil {
			return err
		}
		if err := n.config.Log.SaveSnapshot(c.Stored.Snapshot); err != nil {
			return err
		}
	}
	if c.Stored.Snapshot != nil {
		state, err := SnapshotMachine(c.Stored.Snapshot)
		if err != nil {
			return err
		}
		if err := n.config.Machine.Restore(state); err != nil {
			return fmt.Errorf("raft: the snapshot at %d: %w", c.Stored.Snapshot.GetMetadata().GetIndex(), err)
		}
	}
	n.core, err = NewCore(*c)
	c.Stored = wal.Stored{} // the core holds what it needs of it
	return err
}

// run is the node's goroutine.
func (n *Node) run() {
	defer close(n.done)
	ticker := time.NewTicker(n.config.Tick)
	defer ticker.Stop()
	var box inbox
	if len(n.core.members) == 1 && n.core.members[n.core.id].ID != 0 {
		_ = n.core.Campaign() // there is nobody to wait for
	}
	for n.core.Err() == nil {
		n.release()
		tick := false
		select {
		case <-n.stop:
			n.end(errNodeStopped)
			return
		case <-ticker.C:
			tick = true
		case <-n.wake:
			if n.crowded && n.inbox.proposes() {
				runtime.Gosched() // others who were just answered ask again, too: all go under one sync
			}
		}
		n.inbox.swap(&box)
		n.take(&box)
		if tick {
			_ = n.core.Tick()
		}
		if err := n.work(); err != nil {
			n.logger.Error("raft: the node stops", slog.String("node", n.config.Core.Name), slog.Any("error", err))
			n.end(err)
			return
		}
		n.publish()
		if tick {
			n.watch()
		}
	}
	n.logger.Error("raft: the node stops", slog.String("node", n.config.Core.Name), slog.Any("error", n.core.Err()))
	n.end(n.core.Err())
}

// work carries out all effects, in the order that all safety rests on.
func (n *Node) work() error {
	for n.core.HasEffects() {
		e := n.core.Effects()
		n.send(n.hold(e.Early))
		if e.Sync {
			n.sendHeld() // it would wait for the disk
		}
		if e.Snapshot != nil {
			if err := n.config.Log.SaveSnapshot(e.Snapshot); err != nil {
				return err
			}
		}
		if e.State != nil || len(e.Entries) > 0 {
			if err := n.config.Log.Save(e.State, e.Entries, e.Sync); err != nil {
				return err
			}
		}
		n.send(e.Late)
		if err := n.apply(&e); err != nil {
			return err
		}
		if e.Members != nil {
			n.learnPeers(e.Members)
		}
		for _, w := range e.Reads {
			w.Done(fsm.Applied{})
		}
		if err := n.core.Advance(); err != nil {
			return err
		}
	}
	if n.core.WantsSnapshot() {
		if _, err := n.snapshot(); err != nil {
			n.logger.Error("raft: there is no snapshot, and the log grows", slog.Any("error", err))
		}
	}
	return n.core.Err()
}

// apply changes the state machine.
func (n *Node) apply(e *Effects) error {
	if e.Snapshot == nil && len(e.Apply) == 0 {
		return nil
	}
	n.state.Lock()
	defer n.state.Unlock()
	if n.applied != nil {
		defer n.applied()
	}
	if e.Snapshot != nil {
		state, err := SnapshotMachine(e.Snapshot)
		if err != nil {
			return err
		}
		if err := n.config.Machine.Restore(state); err != nil {
			return fmt.Errorf("raft: the leader's snapshot at %d: %w", e.Snapshot.GetMetadata().GetIndex(), err)
		}
	}
	for _, entry := range e.Apply {
		if err := n.config.Machine.Apply(entry.GetIndex(), entry.GetTerm(), entry.Data, n.core.Result); err != nil {
			return fmt.Errorf("raft: entry %d: %w", entry.GetIndex(), err)
		}
	}
	return nil
}

// snapshot takes one, and forgets what it holds of the log. A state that cannot be
// written is no reason to end: it can be used, and all others would end, too.
func (n *Node) snapshot() (index uint64, err error) {
	n.state.RLock()
	s, err := n.core.Snapshot(n.config.Machine.AppendSnapshot)
	n.state.RUnlock()
	if err != nil {
		return 0, err
	}
	if err := n.config.Log.SaveSnapshot(s); err != nil {
		n.core.err = err // the log may be half written
		return 0, err
	}
	n.core.Compact(s)
	return s.GetMetadata().GetIndex(), nil
}

// end ends all that wait for the node.
func (n *Node) end(err error) {
	if n.config.Transport != nil {
		n.config.Transport.Handle(n.config.Group, nil)
	}
	n.err = err
	n.core.Fail(err)
	n.inbox.mu.Lock()
	n.inbox.closed, n.inbox.err = true, err
	rest := inbox{proposals: n.inbox.proposals, reads: n.inbox.reads, calls: n.inbox.calls}
	n.inbox.proposals, n.inbox.reads, n.inbox.calls, n.inbox.messages = nil, nil, nil, nil
	n.inbox.mu.Unlock()
	n.take(&rest) // the core refuses all of it
	if closed := n.config.Log.Close(); closed != nil && errors.Is(err, errNodeStopped) {
		n.err = closed
	}
	n.publish()
}

// Close stops the node: what waits for it ends with an error, its log is closed.
// It returns the error that the node had ended with before, if any, unless Err has.
func (n *Node) Close() error {
	n.stopped.Do(func() { close(n.stop) })
	<-n.done
	if errors.Is(n.err, errNodeStopped) || n.told.Load() {
		return nil
	}
	return n.err
}

// onApply has a function called when the state machine has changed. It must not
// wait for anything.
func (n *Node) onApply(f func()) {
	n.state.Lock()
	defer n.state.Unlock()
	n.applied = f
}

// Done is closed when the node has ended; Err says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node has ended, once Done is closed.
func (n *Node) Err() error {
	select {
	case <-n.done:
		n.told.Store(true)
		return n.err
	default:
		return nil
	}
}
