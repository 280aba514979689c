package raft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

type machine = raft.Machine[state, command, table.Outcome]

// Table is the address table of a node, see [table.Table].
type Table struct {
	config  Config
	replica *table.Replica
	control uint64 // group of the messages about members in the transport

	adopt    chan struct{} // the state of the machine may not be the state of the replica
	ended    chan struct{} // the machine may have ended
	requests chan incoming
	renewals chan table.Renewal
	answers  chan answer
	warned   warned // owned by lead

	stop    context.CancelFunc // ends the goroutines
	running sync.WaitGroup
	end     sync.Once

	mu      sync.Mutex
	machine *machine
	changed chan struct{} // closed when machine is another one
}

var (
	_ table.Table    = (*Table)(nil)
	_ table.Resident = (*Table)(nil)
)

// incoming is a request of a node.
type incoming struct {
	from string
	request
}

// requestsMax is how many requests wait for the leader's work. A node repeats its request.
const requestsMax = 64

// Open opens the table on a node. It does not wait for the other nodes: the first
// transaction, or Sync, does. A node that is refused ends its table, see Err.
func Open(c Config) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	t := &Table{
		config: c, replica: table.NewReplica(), control: transport.GroupID(c.Topology, c.Group+"/members"),
		adopt: make(chan struct{}, 1), ended: make(chan struct{}, 1),
		requests: make(chan incoming, requestsMax), renewals: make(chan table.Renewal, requestsMax), answers: make(chan answer, requestsMax),
		changed: make(chan struct{}),
	}
	m, err := t.start()
	if err != nil {
		return nil, t.advise(err)
	}
	t.machine = m
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	for name, address := range c.First {
		if name != c.Node {
			c.Transport.SetPeer(name, address)
		}
	}
	c.Transport.Handle(t.control, t.receive)
	for _, f := range []func(context.Context){t.run, t.seek, t.lead, t.renewTogether} {
		t.running.Go(func() { f(ctx) })
	}
	return t, nil
}

// start starts the state machine on this node.
func (t *Table) start() (*machine, error) {
	c := &t.config
	_, first := c.First[c.Node]
	m, err := raft.New(raft.Config{
		Topology: c.Topology, Group: c.Group, Node: c.Node, Peers: c.peers(), Join: !first,
		Dir: filepath.Join(c.Dir, defaultGroup), Disk: c.Disk, Sync: wal.Always, SnapshotEvery: snapshotEvery,
		ElectionTimeout: c.ElectionTimeout, Heartbeat: c.Heartbeat, Forward: true,
		Transport: link{c.Transport, t.replica}, Logger: c.Logger, LostLog: t.advice(),
		Listener: listener{func() { signal(t.adopt) }},
	}, definition(t.replica, func() { signal(t.adopt) }))
	if err != nil {
		return nil, err
	}
	if err := m.Start(context.Background(), host{t.ended}); err != nil {
		return nil, err
	}
	signal(t.adopt)
	return m, nil
}

// host receives the end of the machine.
type host struct{ ended chan struct{} }

func (host) BeginReply()   {}
func (host) EndReply()     {}
func (h host) Wake()       { signal(h.ended) }
func (host) Stepped() bool { return false }

// signal wakes the receiver of a channel.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run keeps the replica on the state of the machine, and handles the end of the machine.
func (t *Table) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.adopt:
			m, _ := t.current()
			_ = m.Stale(t.adoptState) // if the machine has ended, there is nothing to adopt
		case <-t.ended:
			if err := t.restart(); err != nil {
				go t.finish(err) // finish waits for this goroutine
				return
			}
		}
	}
}

func (t *Table) adoptState(s *state) {
	if s.table != nil {
		t.replica.Adopt(s.table)
	}
}

// restart starts the machine again if it ended because the group has this node under the
// id of its previous disk. The leader is about to replace that id, see seek. All other
// reasons end the table.
func (t *Table) restart() error {
	m, _ := t.current()
	status := m.Status()
	if status.Role != "stopped" {
		return nil
	}
	err := m.Close()
	switch {
	case err == nil:
		return nil // Close of the table
	case errors.Is(err, raft.ErrRemoved):
		return t.removed(err)
	case !errors.Is(err, raft.ErrLogLost) || status.GroupID != 0:
		return t.advise(err)
	}
	t.config.Logger.Info("table: this node has an empty disk and asks to join as a new node", slog.String("node", t.config.Node))
	return t.startAgain()
}

// removed is the error of a node that the group has removed. err may be nil.
func (t *Table) removed(err error) error {
	text := fmt.Sprintf("node %q was removed from the cluster, or another process has taken its place. To join again as a new node, empty the folder %s",
		t.config.Node, t.folder())
	if err == nil {
		return fmt.Errorf("%w: %s", table.ErrSuperseded, text)
	}
	return fmt.Errorf("%w: %s: %w", table.ErrSuperseded, text, err)
}

// advise adds to an error what to do about a log that is damaged or is another one. The
// advice of package wal is for state machines: the commands topoctl raft and topoctl log do
// not know the address table, and need not, because a node with an empty disk joins again
// by itself.
func (t *Table) advise(err error) error {
	if !errors.Is(err, wal.ErrDamaged) && !errors.Is(err, wal.ErrIdentity) {
		return err // Config.LostLog is in the errors of a lost log
	}
	return fmt.Errorf("%w. %s", err, t.advice())
}

// advice says what to do about a log that is damaged or lost.
func (t *Table) advice() string {
	return fmt.Sprintf("This log holds the address table, for which no topoctl command is needed: if the folder is damaged or lost, remove %s, and start the node while most other first members run",
		t.folder())
}

// current returns the machine, and a channel that is closed when it is replaced.
func (t *Table) current() (*machine, chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine, t.changed
}

// call calls f with the machine. If the machine has ended before f had an effect, call
// waits for another machine or for the end of the table.
func (t *Table) call(ctx context.Context, f func(*machine) error) error {
	for {
		if err := t.Err(); err != nil {
			return err
		}
		m, changed := t.current()
		err := f(m)
		switch {
		case err == nil:
			return nil
		case !fsm.OutcomeKnown(err):
			return fmt.Errorf("%w: %w", table.ErrUnknown, err)
		case !errors.Is(err, fsm.ErrStopped):
			return err
		}
		select {
		case <-changed:
		case <-t.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Waiting says what the table waits for while this node is not a member of the group, or
// knows no leader.
func (t *Table) Waiting() string {
	m, _ := t.current()
	return waitsFor(m.Status(), slices.Sorted(maps.Keys(t.config.First)))
}

func waitsFor(s raft.Status, members []string) string {
	first := strings.Join(members, ", ")
	switch {
	case s.Role == "founding":
		return fmt.Sprintf("all first members (%s): they must run and reach each other, because this node has no log of the address table", first)
	case s.Role == "joining":
		return fmt.Sprintf("most of the first members (%s), which admit this node to the address table", first)
	case s.Leader == "":
		var voters []string
		for _, m := range s.Members {
			if !m.Learner {
				voters = append(voters, m.Name)
			}
		}
		return fmt.Sprintf("a leader of the address table: %d of its %d voters (%s) must run and reach each other", len(voters)/2+1, len(voters), strings.Join(voters, ", "))
	}
	return ""
}

// Replica returns the table's copy on this node.
func (t *Table) Replica() *table.Replica { return t.replica }

// Essential implements table.Resident. The number of voters is that of the first members: a vote is
// moved to another node, but not removed.
func (t *Table) Essential() bool {
	voters := len(t.config.First)
	if _, first := t.config.First[t.config.Node]; first {
		return voters-1 < voters/2+1
	}
	return false
}

// Txn applies a transaction.
func (t *Table) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	c := &table.Command{Kind: table.CommandTxn, Guards: guards, Changes: changes}
	revision, out, err := t.propose(ctx, c)
	if err != nil {
		return table.Revision{}, err
	}
	return revision, out.Err(c)
}

// propose appends a command to the log, and waits until the replica has applied it.
func (t *Table) propose(ctx context.Context, c *table.Command) (revision table.Revision, out table.Outcome, err error) {
	b, err := table.AppendCommand(nil, c)
	if err != nil {
		return revision, out, err
	}
	err = t.call(ctx, func(m *machine) error {
		r, err := m.ProposeResult(ctx, b)
		out, revision = r.Value, table.Revision{Term: r.Term, Index: r.Index, Position: r.Value.Position}
		return err
	})
	if err != nil {
		return revision, out, err
	}
	if err := t.replica.Wait(ctx, revision); err != nil { // a snapshot may have been installed just before
		return revision, out, fmt.Errorf("%w: it was applied, but not yet to the replica of this node: %w", table.ErrUnknown, err)
	}
	return revision, out, nil
}

// outcome is propose without the revision.
func (t *Table) outcome(ctx context.Context, c *table.Command) (table.Outcome, error) {
	_, out, err := t.propose(ctx, c)
	return out, err
}

// Sync waits until the replica has all acknowledged transactions. It asks a majority.
func (t *Table) Sync(ctx context.Context) error {
	return t.call(ctx, func(m *machine) error { return m.Read(ctx, t.adoptState) })
}

// Acquire acquires a lease.
func (t *Table) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (*table.Lease, error) {
	return table.AcquireWith(ctx, t.replica, t.outcome, t.askRenewal, &table.Command{Kind: table.CommandAcquire, Name: name, Holder: holder, TTL: ttl})
}

// askRenewal passes a renewal to the leader, if this node knows one.
func (t *Table) askRenewal(_ context.Context, w table.Renewal) {
	m, _ := t.current()
	switch leader, known := m.Leader(); {
	case !known:
	case leader == t.config.Node:
		t.takeRenewal(w)
	default:
		t.send(leader, appendRenewals(nil, w))
	}
}

// takeRenewal takes a renewal of a node that takes this node for the leader. It never waits: a holder asks again.
func (t *Table) takeRenewal(w table.Renewal) {
	select {
	case t.renewals <- w:
	default:
	}
}

// renewTogether writes the renewals of all nodes. A node that is not the leader any more forwards them.
func (t *Table) renewTogether(ctx context.Context) {
	t.replica.RenewTogether(ctx, t.renewals, t.outcome)
}

// Status returns the status of the group on this node.
func (t *Table) Status() raft.Status {
	m, _ := t.current()
	return m.Status()
}

// Done returns a channel that is closed when the table has ended.
func (t *Table) Done() <-chan struct{} { return t.replica.Done() }

// Err returns why the table has ended.
func (t *Table) Err() error { return t.replica.Err() }

// Close ends the table on this node.
func (t *Table) Close() error {
	t.finish(table.ErrClosed)
	if err := t.Err(); !errors.Is(err, table.ErrClosed) {
		return err
	}
	return nil
}

// finish ends the table with an error. It returns when all goroutines have ended.
func (t *Table) finish(err error) {
	t.end.Do(func() {
		t.config.Transport.Handle(t.control, nil)
		t.stop()
		t.running.Wait()
		m, _ := t.current()
		if closed := m.Close(); closed != nil && errors.Is(err, table.ErrClosed) {
			err = closed
		}
		if t.left(t.config.Node) {
			t.removeLog()
		}
		t.replica.Fail(err)
	})
}
