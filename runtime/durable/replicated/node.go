package replicated

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

// Config has the settings of a [Node].
type Config struct {
	// Raft names the group, the nodes, the folder and the certificates. Forward is set.
	Raft raft.Config
	// Engine has the settings of the engine that runs while this node leads. Store and Agreed
	// are set. Clock is also the clock of Raft.
	Engine engine.Config
	// SetBack sets the time of the promises back when this node begins to lead, if it is far
	// ahead of the clocks of a majority: these were wrong before. See [engine.SetBack].
	SetBack bool
	// URL is the address of this node's server, which the other nodes use while this node
	// leads. The server has this node as its Backend, and [Node.Local] as its Local. "": the
	// nodes reach each other over the connections of the group, which need no server. URL is
	// then empty at each node.
	URL string
	// Client has the token and the certificates for the servers of other nodes.
	Client client.Options
	// Dial returns a backend that carries out operations at the server of another node,
	// without forwarding them. nil: a client.
	Dial func(url string) (protocol.Backend, error)
	// Wait is how long an operation waits for a leader. 0 means WaitDefault.
	Wait time.Duration
}

// WaitDefault is longer than an election, and shorter than clients wait for an answer.
const WaitDefault = 5 * time.Second

const (
	closeTimeout  = 10 * time.Second       // of an engine that was replaced: its commits have failed already
	retryInterval = 100 * time.Millisecond // between two attempts to begin an epoch
	handOverMax   = 2 * time.Second        // after that an election is as fast
)

// A Node is one of the nodes that keep the promises.
type Node struct {
	config  Config
	machine *machine
	log     *slog.Logger
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	ended   chan struct{} // closed when run has returned
	signals chan struct{} // from the host: an event waits

	mu      sync.Mutex
	lead    fsm.Leadership
	engine  *engine.Engine  // while this node leads and has begun its epoch
	url     string          // of the last leader, see leaderURL
	changed context.Context // ends when lead, engine or url changes
	endLead func()          // ends changed
	remotes map[string]protocol.Backend
	err     error // why the log failed
	closing bool  // Close was called: the node begins no epoch
	// connections has those of workers and listeners to this node, by group and pid.
	connections map[[2]string]*connection
	// confirmations are for the connections of other nodes to the engine of this one.
	confirmations confirmations
	last          *engine.Engine // the present engine, or the last one while it closes
	past          engine.Stats   // of the engines before
}

var _ protocol.Backend = (*Node)(nil)

// Open starts a node. It does not wait for a leader.
func Open(config Config) (*Node, error) {
	var n *Node
	if config.URL == "" {
		config.URL = peerScheme + cmp.Or(config.Raft.Node, "alone")
		config.Raft.Called = func(ctx context.Context, request []byte, send func([]byte) error) error {
			return n.answerCall(ctx, request, send)
		}
		config.Dial = func(url string) (protocol.Backend, error) { return n.peerOf(url), nil }
	}
	if config.Dial == nil {
		config.Client.Forwarded = true
		config.Dial = func(url string) (protocol.Backend, error) { return dial(url, config.Client) }
	}
	config.Wait = cmp.Or(config.Wait, WaitDefault)
	config.Raft.Forward = true
	if config.Engine.Clock == nil {
		config.Engine.Clock = engine.NewClock()
	}
	config.Raft.Now = config.Engine.Clock.Wall
	m, err := raft.New(config.Raft, definition)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n = &Node{
		config: config, machine: m, log: config.Raft.Logger, ctx: ctx, cancel: cancel,
		ended: make(chan struct{}), signals: make(chan struct{}, 1),
		remotes: make(map[string]protocol.Backend), connections: make(map[[2]string]*connection),
	}
	n.changed, n.endLead = context.WithCancel(context.Background())
	if n.log == nil {
		n.log = slog.Default()
	}
	m.OnLeadership(0, func(l fsm.Leadership) { n.change(func() { n.lead = l }) })
	if err := m.Start(ctx, host{n}); err != nil {
		cancel()
		return nil, err
	}
	go n.run()
	go n.watch()
	return n, nil
}

func dial(url string, options client.Options) (protocol.Backend, error) {
	c, err := client.New(url, options)
	if err != nil {
		return nil, err // not a nil *Client
	}
	return c, nil
}

// host lets the machine send its events to a goroutine of the node.
type host struct{ node *Node }

func (host) BeginReply()   {}
func (host) EndReply()     {}
func (host) Stepped() bool { return false }

func (h host) Wake() {
	select {
	case h.node.signals <- struct{}{}:
	default:
	}
}

// change changes the fields that mu protects, and wakes all that wait for a change.
func (n *Node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.wake()
}

// wake ends changed. The caller holds mu.
func (n *Node) wake() {
	n.endLead()
	n.changed, n.endLead = context.WithCancel(context.Background())
}

// watch notices when a new leader has begun its epoch. Until then the node may have used
// the server of the leader before, which may never answer.
func (n *Node) watch() {
	for n.ctx.Err() == nil {
		n.mu.Lock()
		_, _ = n.leaderURL() // an error means that the machine ends
		n.mu.Unlock()
		wait(n.ctx, retryInterval)
	}
}

// leaderURL is the URL of the last leader that has begun its epoch. If it has changed, it
// ends changed, so that no operation waits for an answer of the leader before. Operations that
// were sent to the new leader go on. The caller holds mu.
func (n *Node) leaderURL() (string, error) {
	url := n.url
	err := n.machine.Stale(func(s *state) { url = s.url })
	if url != n.url {
		n.url = url
		n.wake()
	}
	return url, err
}

// run opens and closes the engine as the leader changes.
func (n *Node) run() {
	defer close(n.ended)
	events := make(chan struct{})
	go func() {
		defer close(events)
		for {
			select {
			case <-n.ctx.Done():
				return
			case <-n.signals:
			}
			if err := n.machine.Finish(); err != nil {
				n.log.Error("durable: cannot follow the leader of the group", "error", err)
			}
			if n.machine.Status().Role == "stopped" {
				n.mu.Lock()
				n.err = n.machine.Err()
				n.mu.Unlock()
				n.cancel()
			}
		}
	}()
	for n.ctx.Err() == nil {
		n.mu.Lock()
		lead, changed, closing := n.lead, n.changed, n.closing
		n.mu.Unlock()
		if lead.Here && !closing {
			n.serve(lead.Term)
			continue
		}
		select {
		case <-changed.Done():
		case <-n.ctx.Done():
		}
	}
	<-events
}

// serve runs the engine until this node does not lead any longer in a term.
func (n *Node) serve(term uint64) {
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	go n.endWith(ctx, cancel, term)
	e, err := n.open(ctx)
	if err != nil {
		if ctx.Err() == nil {
			n.log.Warn("durable: this node leads, but cannot begin to serve", "error", err)
			wait(ctx, retryInterval)
		}
		return
	}
	n.change(func() { n.engine, n.last = e, e })
	select {
	case <-ctx.Done():
	case <-e.Stopped():
	}
	failed := ctx.Err() == nil
	n.change(func() { n.engine = nil })
	closing, done := context.WithTimeout(context.Background(), closeTimeout)
	defer done()
	if n.ctx.Err() == nil {
		cancel() // the commits of this engine cannot succeed any longer
	}
	err = e.Close(closing)
	n.change(func() {
		stats := e.Stats()
		n.last = nil
		n.past.Add(&stats)
	})
	if failed && err != nil {
		n.log.Warn("durable: the engine has failed and begins again", "error", err)
		wait(n.ctx, retryInterval) // each begin is an entry of the log
	}
}

// Stats are the counters of the engines that this node has run, and the load of the
// present one.
func (n *Node) Stats() engine.Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	var s engine.Stats
	if n.last != nil {
		s = n.last.Stats()
	}
	s.Add(&n.past)
	return s
}

func (n *Node) open(ctx context.Context) (*engine.Engine, error) {
	if err := n.awaitClock(ctx); err != nil {
		return nil, err
	}
	r, err := begin(ctx, n.machine, n.config.URL)
	if err != nil {
		return nil, err
	}
	c := n.config.Engine
	c.Clock, c.Agreed = groupClock{c.Clock, n.machine}, n.voters() > 1 // one clock does not agree with another
	if n.config.SetBack {
		if err := n.setBack(r); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if c.Store = r; !strings.HasPrefix(n.config.URL, peerScheme) {
		c.ServerURL = cmp.Or(c.ServerURL, n.config.URL)
	}
	e, err := engine.Open(c)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return e, nil
}

// endWith calls cancel when this node does not lead in a term any longer.
func (n *Node) endWith(ctx context.Context, cancel func(), term uint64) {
	defer cancel()
	for {
		n.mu.Lock()
		lead, changed := n.lead, n.changed
		n.mu.Unlock()
		if !lead.Here || lead.Term != term {
			return
		}
		select {
		case <-changed.Done():
		case <-ctx.Done():
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Close ends the node. Operations that this node has accepted are answered. If the node leads
// and the others can go on without it, Close makes one of them the leader.
func (n *Node) Close(ctx context.Context) error {
	n.mu.Lock()
	e := n.engine
	n.closing = true
	n.mu.Unlock()
	var err error
	if e != nil {
		err = e.Close(ctx) // while the group still commits
		n.handOver(ctx)
	}
	n.cancel()
	select {
	case <-n.ended:
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
	n.mu.Lock()
	remotes := slices.Collect(maps.Values(n.remotes))
	err = errors.Join(err, n.err)
	n.mu.Unlock() // both calls wait for calls that need the lock
	for _, b := range remotes {
		if c, ok := b.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return errors.Join(err, n.machine.Close())
}

// handOver makes another node the leader, so that the group need not wait for an election.
func (n *Node) handOver(ctx context.Context) {
	to := successor(n.machine.Status())
	if to == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverMax)
	defer cancel()
	if err := n.machine.TransferLeader(ctx, to); err != nil {
		n.log.Warn("durable: the leadership was not handed over; the other nodes elect a leader", "to", to, "error", err)
	}
}

// successor returns the active voter with the longest log, or "" if this node does not lead or
// the active voters are not a majority without it.
func successor(s raft.Status) (name string) {
	voters, active, match := 0, 0, uint64(0)
	for _, m := range s.Members {
		if m.Learner || m.Leaving {
			continue
		}
		voters++
		if m.Name == s.Node || !m.Active {
			continue
		}
		if active++; m.Match >= match {
			name, match = m.Name, m.Match
		}
	}
	if s.Role != "leader" || 2*active <= voters {
		return ""
	}
	return name
}

// Err returns why the node has ended before Close, or nil.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Stopped is closed when the node has ended, after Close or because its log failed. Close
// then returns the error.
func (n *Node) Stopped() <-chan struct{} { return n.ended }

// Status is the status of the node in its group.
func (n *Node) Status() raft.Status { return n.machine.Status() }
