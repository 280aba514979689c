package broadcast

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// Config configures the table on a node.
type Config struct {
	Topology string // name in the topology file
	Group    string // distinguishes the tables of a topology; "": addresses
	Node     string // name of this node
	Dir      string // existing folder; the log is in Dir/wal

	Transport transport.Transport // shared with other parts of the node; the caller closes it after the table

	// Alive returns the names of the nodes that are alive, as the failure detector sees
	// them. It is called often, so it must not wait.
	Alive func() []string

	Tick   time.Duration // time after which lost messages are repeated; 0: 100 ms
	Logger *slog.Logger  // nil: slog.Default()
}

const (
	defaultGroup = "addresses"
	defaultTick  = 100 * time.Millisecond
	inputsMax    = 1024 // messages and proposals that wait for the node; further messages are dropped, and their senders repeat them
	resendTicks  = 5    // ticks after which a command is sent again
)

func (c *Config) check() error {
	if c.Group == "" {
		c.Group = defaultGroup
	}
	if c.Tick == 0 {
		c.Tick = defaultTick
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Topology == "" || c.Transport == nil || c.Alive == nil || c.Tick < 0 {
		return errors.New("table/broadcast: Config.Topology, Transport and Alive must be set, and Tick must not be below 0")
	}
	if err := certs.CheckNode(c.Node); err != nil { // the name is part of the name of a file
		return fmt.Errorf("table/broadcast: Config.Node: %w", err)
	}
	return nil
}

// Table is the address table of a node, see [table.Table].
type Table struct {
	config  Config
	group   uint64
	replica *table.Replica
	core    *core // used by run only
	log     *file

	inputs  chan func(now int64)
	stop    chan struct{}
	stopped sync.Once

	mu      sync.Mutex
	waiting map[uint64]chan result // by number
}

var _ table.Table = (*Table)(nil)

// Open opens the table on a node. It does not wait for the other nodes.
func Open(c Config) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	log, contents, err := openFile(c.Dir, c.Node)
	if err != nil {
		return nil, err
	}
	t := &Table{
		config: c, group: transport.GroupID(c.Topology, c.Group+"/broadcast"), replica: table.NewReplica(), log: log,
		inputs: make(chan func(int64), inputsMax), stop: make(chan struct{}), waiting: map[uint64]chan result{},
	}
	t.core = newCore(c.Node, t.replica, log, contents)
	c.Transport.Handle(t.group, t.receive)
	go t.run()
	return t, nil
}

// newCore returns the core of a node with the state that its log holds.
func newCore(node string, r *table.Replica, log storage, from contents) *core {
	c := &core{self: node, replica: r, log: log, state: from.state}
	if c.state == nil {
		c.state = table.NewState()
	}
	r.Adopt(c.state)
	for _, e := range from.entries {
		c.applyEntry(e)
		c.size += e.size()
	}
	c.last = c.state.Revision()
	c.term = c.last.Term
	return c
}

// receive passes messages to the core. It never waits.
func (t *Table) receive(from string, payloads [][]byte) {
	for _, b := range payloads {
		m, err := readMessage(b)
		if err != nil {
			t.config.Logger.Warn("table: a damaged message was ignored", slog.String("sender", from), slog.Any("error", err))
			continue
		}
		select {
		case t.inputs <- func(now int64) { t.core.receive(now, from, m) }:
		default:
		}
	}
}

// run drives the core.
func (t *Table) run() {
	tick := time.NewTicker(t.config.Tick)
	defer tick.Stop()
	err := table.ErrClosed
	for running := true; running; {
		select {
		case f := <-t.inputs:
			f(time.Now().UnixNano())
		case <-tick.C:
			t.core.tick(time.Now().UnixNano(), t.config.Alive())
		case <-t.stop:
			running = false
		}
		t.flush()
		if t.core.err != nil {
			err, running = fmt.Errorf("table/broadcast: %w", t.core.err), false
		}
	}
	t.config.Transport.Handle(t.group, nil)
	if closed := t.log.close(); closed != nil && errors.Is(err, table.ErrClosed) {
		err = closed
	}
	t.replica.Fail(err)
}

// flush sends the messages of the core, and passes results to their callers.
func (t *Table) flush() {
	for _, o := range t.core.out {
		t.config.Transport.Send(o.to, transport.Message{Group: t.group, Payload: o.encode()})
	}
	clear(t.core.out)
	t.core.out = t.core.out[:0]
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.core.results {
		if w := t.waiting[r.number]; w != nil {
			select {
			case w <- r:
			default: // a repeated answer
			}
		}
	}
	t.core.results = t.core.results[:0]
}

// Replica returns the table's copy on this node.
func (t *Table) Replica() *table.Replica { return t.replica }

// Txn applies a transaction.
func (t *Table) Txn(ctx context.Context, guards []table.Guard, changes []table.Change) (table.Revision, error) {
	c := &table.Command{Kind: table.CommandTxn, Guards: guards, Changes: changes}
	r, err := t.propose(ctx, c)
	if err != nil {
		return table.Revision{}, err
	}
	return r.revision, r.outcome.Err(c)
}

func (t *Table) propose(ctx context.Context, c *table.Command) (result, error) {
	b, err := table.AppendCommand(nil, c)
	if err != nil {
		return result{}, err
	}
	return t.request(ctx, kindPropose, b)
}

// LosesChanges implements [table.Lossy]: after a cut, the changes of one side are lost.
func (t *Table) LosesChanges() bool { return true }

// Sync asks the sequencer for its revision, and waits until the replica has it.
func (t *Table) Sync(ctx context.Context) error {
	_, err := t.request(ctx, kindRead, nil)
	return err
}

// Acquire acquires a lease.
func (t *Table) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (*table.Lease, error) {
	propose := func(ctx context.Context, c *table.Command) (table.Outcome, error) {
		r, err := t.propose(ctx, c)
		return r.outcome, err
	}
	renew := func(ctx context.Context, w table.Renewal) {
		_, _ = propose(ctx, &table.Command{Kind: table.CommandRenew, Renewals: []table.Renewal{w}})
	}
	return table.AcquireWith(ctx, t.replica, propose, renew, &table.Command{Kind: table.CommandAcquire, Name: name, Holder: holder, TTL: ttl})
}

// request sends a command or a read to the sequencer, until it answers. If there is
// another sequencer before the first one has answered, the outcome of a command is unknown.
func (t *Table) request(ctx context.Context, kind byte, data []byte) (result, error) {
	number, answers := rand.Uint64(), make(chan result, 1)
	t.mu.Lock()
	t.waiting[number] = answers
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiting, number)
	}()
	again := time.NewTimer(0)
	defer again.Stop()
	for asked := ""; ; {
		select {
		case <-again.C:
			to := t.lowest()
			if asked != "" && asked != to && kind == kindPropose {
				return result{}, fmt.Errorf("%w: node %q has not answered, and is not the sequencer any more", table.ErrUnknown, asked)
			}
			asked = to
			t.ask(to, kind, number, data)
			again.Reset(resendTicks * t.config.Tick)
		case r := <-answers:
			switch r.status {
			case statusDone:
				if err := t.replica.Wait(ctx, table.Revision{Index: r.revision.Index}); err != nil {
					return r, fmt.Errorf("%w: it was applied, but not yet to the replica of this node: %w", table.ErrUnknown, err)
				}
				return r, nil
			case statusLost:
				return r, fmt.Errorf("%w: the sequencer has changed", table.ErrUnknown)
			}
			asked = ""
			again.Reset(t.config.Tick)
		case <-t.Done():
			return result{}, unknownIf(asked != "" && kind == kindPropose, t.Err())
		case <-ctx.Done():
			return result{}, unknownIf(asked != "" && kind == kindPropose, ctx.Err())
		}
	}
}

func unknownIf(unknown bool, err error) error {
	if unknown {
		return fmt.Errorf("%w: %w", table.ErrUnknown, err)
	}
	return err
}

// lowest returns the node that is the sequencer, as this node sees it.
func (t *Table) lowest() string { return slices.Min(append(t.config.Alive(), t.config.Node)) }

// ask sends a request to a node, which may be this one.
func (t *Table) ask(to string, kind byte, number uint64, data []byte) {
	if to != t.config.Node {
		m := message{kind: kind, body: append(binary.LittleEndian.AppendUint64(nil, number), data...)}
		t.config.Transport.Send(to, transport.Message{Group: t.group, Payload: m.encode()})
		return
	}
	alive := t.config.Alive()
	propose := func(now int64) {
		t.core.see(alive)
		t.core.propose(now, proposal{to, number, data, kind == kindRead})
	}
	select {
	case t.inputs <- propose:
	default: // asked again after a few ticks
	}
}

// Done returns a channel that is closed when the table has ended.
func (t *Table) Done() <-chan struct{} { return t.replica.Done() }

// Err returns why the table has ended.
func (t *Table) Err() error { return t.replica.Err() }

// Close ends the table on this node.
func (t *Table) Close() error {
	t.stopped.Do(func() { close(t.stop) })
	<-t.Done()
	if err := t.Err(); !errors.Is(err, table.ErrClosed) {
		return err
	}
	return nil
}
