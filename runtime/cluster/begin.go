package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	gogrpc "google.golang.org/grpc"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// Open makes this process a node of a cluster, or a client. It returns nil if neither the options nor
// the environment name a node: then the process runs the whole topology. Nothing is
// opened before Begin.
func Open(c Config, o piper.NodeSettings) (*Node, error) {
	if client, ok := o.Client.(*ClientConfig); ok {
		return openClient(c, client, o)
	}
	s, ok, err := resolve(c, o)
	if !ok || err != nil {
		return nil, err
	}
	return newNode(s), nil
}

// wireVersion is the version of the messages between nodes. It must change when nodes of
// two releases could misunderstand each other.
const wireVersion = "topogen-cluster-3"

// waitLog is how often a node that waits for others says so.
const waitLog = 5 * time.Second

// Begin implements border.Nodes. It joins the cluster and waits until the address table
// says which instances this node runs.
func (n *Node) Begin(ctx context.Context, p *border.Border) (err error) {
	if n.client != nil {
		if err := n.client.begin(ctx, n, p); err != nil {
			return fmt.Errorf("cluster: client: %w", err)
		}
		return nil
	}
	if err := n.connect(); err != nil {
		return fmt.Errorf("cluster: node %s: %w", n.settings.node, err)
	}
	last := n.newLastRun(p)
	joining, joined := n.names.within(ctx)
	err = n.join(joining, last)
	if err != nil && ctx.Err() == nil && joining.Err() != nil { // another process has the name
		err = context.Cause(joining)
	}
	if joined(); errors.Is(err, piper.ErrFinished) {
		n.farewells.await(ctx, last.alone)
		n.forgetProcess(last.killed)
		return err
	} else if err != nil {
		return fmt.Errorf("cluster: node %s: %w", n.settings.node, n.settings.explain(n.stopped(ctx, err)))
	}
	where, err := newLookup(&n.settings, n.table.Replica())
	if err != nil {
		return err
	}
	where.enter(n.boot)
	n.where.Store(where)
	if err := p.Place(where.isHere); err != nil {
		return err
	}
	n.core.begin(p, where)
	n.fence.begin(p)
	n.transport.Handle(n.group(), n.receive)
	n.transport.Handle(n.clients.group(), n.clients.receivePassed)
	n.transport.Handle(n.farewells.group(), n.farewells.receive)
	n.start()
	n.opened.Store(&opened{n.table, n.detector, where, p}) // from here on, other goroutines ask for views
	go n.watch(where)
	go n.gone.run()
	return nil
}

// Find implements border.Nodes. Until the address table is known, only the first members are.
func (n *Node) Find(node string) (here, known bool) {
	if where := n.where.Load(); where != nil {
		return where.find(node)
	}
	_, known = n.settings.Nodes[node]
	return node == n.settings.node, known
}

// Others implements border.Nodes. A client has no instances, and counts those of one node as
// its own until a request is on its way.
func (n *Node) Others() int {
	if where := n.where.Load(); where != nil {
		return max(0, len(where.nodes())-1)
	}
	return max(0, len(n.settings.Nodes)-1)
}

// connect opens the transport.
func (n *Node) connect() error {
	s := &n.settings
	if s.transport != nil {
		n.setTransport(s.transport, func() error { return nil })
		return nil
	}
	config := grpc.Config{
		Node: s.node, Topology: s.Topology, Version: wireVersion, TrustDomain: s.TrustDomain, Address: s.address,
		Insecure: s.Insecure, Peers: s.Nodes, Logger: n.log, Register: n.register, ClientService: clientService,
		Limits: map[string]grpc.CallLimit{connectMethod: {Conversation: true}},
		Ended:  n.hasEnded, Identity: n.names,
	}
	config.TLSNames, config.InsecureName = tlsNames, VariableInsecure+"=true (cluster.insecure)"
	if s.TLSCert != "" {
		config.TLS = &grpc.TLS{Cert: s.TLSCert, Key: s.TLSKey, CA: s.TLSCA}
	}
	t, err := grpc.Listen(config)
	if err != nil {
		return err
	}
	n.setTransport(t, t.Close)
	n.names.recheck = t.Recheck
	n.core.reuseFrames = true
	return nil
}

// setTransport sets the transport of the node and of its parts.
func (n *Node) setTransport(t transport.Transport, end func() error) {
	n.links = newLinks(t, &n.gone)
	n.transport, n.close = n.links, end
}

// register adds the services of the node for operators and for clients.
func (n *Node) register(r gogrpc.ServiceRegistrar) {
	(&operators{view: n.View, remove: n.remove, shows: newAnswering()}).register(r)
	n.clients.register(r)
}

// join opens the address table, and enters this process in it.
func (n *Node) join(ctx context.Context, last *lastRun) (err error) {
	s := &n.settings
	stop := n.logWaiting()
	defer stop()
	if err := n.names.mayJoin(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("the folder of the node (cluster.dir, %s): %w", VariableDir, err)
	}
	d, err := s.Detect(member.Settings{
		Node:  member.Node{Name: s.node, Address: s.address, Boot: uint64(time.Now().UnixNano()), Meta: metaOf(n.boot)},
		First: s.Nodes, Config: s.Membership, Transport: n.transport,
		Group: transport.GroupID(s.Topology, "member"), Observe: n.observe, Logger: n.log,
		Owner: n.names.isOwner,
	})
	if err != nil {
		return fmt.Errorf("failure detection: %w", err)
	}
	n.detector = d
	t, err := s.Table(table.Setup{
		Topology: s.Topology, Plan: s.Plan, Node: s.node, Address: s.address, First: s.Nodes, Dir: s.Dir,
		Transport: n.transport, Alive: n.alive, Logger: n.log,
	})
	if err != nil {
		return fmt.Errorf("the address table: %w", err)
	}
	n.table = t // only now, because an engine that fails may return a nil pointer as a Table
	n.fence.by = n.chooseProof()
	n.opened.Store(&opened{table: n.table})
	if err := n.detector.Start(); err != nil {
		return fmt.Errorf("failure detection: %w", err)
	}
	n.opened.Store(&opened{table: n.table, detector: n.detector})
	if err := last.orFinished(ctx, t.Replica(), n.enter); err != nil {
		return err
	}
	if err := n.noteProcess(); err != nil {
		return fmt.Errorf("the folder of the node (cluster.dir, %s): %w", VariableDir, err)
	}
	return nil
}

// enter enters this process in the address table.
func (n *Node) enter(ctx context.Context) error {
	s := &n.settings
	if losesChanges(n.table) {
		if err := n.names.awaitSeen(ctx); err != nil {
			return err
		}
	}
	if _, first := s.Nodes[s.node]; first {
		var nodes []table.Node
		for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
			nodes = append(nodes, table.Node{Name: name, Address: s.Nodes[name]})
		}
		if err := table.Bootstrap(ctx, n.table, s.plan(), s.placements(), nodes); err != nil {
			return fmt.Errorf("the address table: %w", err)
		}
	}
	if former := n.table.Replica().Node(s.node); former == nil || former.Boot == 0 {
		if err := n.fence.acquire(ctx); err != nil {
			return err
		}
	}
	me := table.Node{Name: s.node, Address: s.address, Roles: s.roles, Boot: n.boot, Plan: s.Plan}
	if err := table.EnterWhen(ctx, n.table, me, n.mayEnter); err != nil {
		return fmt.Errorf("the address table: %w", err)
	}
	n.names.hasEntered(n.table.Replica())
	n.entered = true
	return nil
}

// mayEnter waits until this process may replace another one in the table, which calls no handlers then.
func (n *Node) mayEnter(ctx context.Context, former *table.Node) error {
	if err := n.names.mayEnter(ctx, former); err != nil {
		return err
	}
	return n.fence.acquire(ctx)
}

// alive lists the nodes that failure detection sees as alive.
func (n *Node) alive() (names []string) {
	for _, m := range n.detector.Members() {
		if m.State == member.Alive {
			names = append(names, m.Name)
		}
	}
	return names
}

// logWaiting logs now and then that the node waits for others, until stop is called.
func (n *Node) logWaiting() (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(waitLog)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				n.log.LogAttrs(context.Background(), slog.LevelInfo, "topogen: this node waits for the address table", n.waiting()...)
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// waiting says what a node waits for that has not joined the cluster.
func (n *Node) waiting() []slog.Attr {
	attrs := []slog.Attr{slog.String("node", n.settings.node)}
	if reason := n.names.waiting(); reason != "" {
		attrs = append(attrs, slog.String("waits_for", reason))
	} else if o := n.opened.Load(); o != nil && o.table != nil {
		reason := ""
		if w, ok := o.table.(table.Waiter); ok {
			reason = w.Waiting()
		}
		switch {
		case reason != "":
		case o.table.Replica().Plan() == "":
			reason = "the first placement, which a first member makes"
		default:
			reason = "the transaction that enters this node"
		}
		attrs = append(attrs, slog.String("waits_for", reason))
	}
	if missing := n.missing(); len(missing) > 0 {
		attrs = append(attrs, slog.String("not_reached", strings.Join(missing, ", ")))
	}
	return attrs
}

// missing lists the first members that this node does not see as alive.
func (n *Node) missing() []string {
	alive := map[string]bool{n.settings.node: true}
	if o := n.opened.Load(); o != nil && o.detector != nil {
		for _, m := range o.detector.Members() {
			alive[m.Name] = m.State == member.Alive || m.Name == n.settings.node
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n.settings.Nodes)), func(name string) bool { return alive[name] })
}

// stopped returns the error of a node that could not join the cluster. If the context of
// Run has ended, it says so in place of what the node was doing.
func (n *Node) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, table.ErrUnknown) && !errors.Is(err, ctx.Err()) {
		return err
	}
	others := ""
	if missing := n.missing(); len(missing) > 0 {
		others = ", while it waited for " + strings.Join(missing, ", ")
	}
	return fmt.Errorf("stopped before it had joined the cluster%s: %w", others, ctx.Err())
}

// placements are the placements of the processors, for the address table. Processors
// whose instances are always with those of another one have no entries.
func (s *settings) placements() []table.Placement {
	var list []table.Placement
	for i, p := range s.Processors {
		if !s.hasEntries(i) {
			continue
		}
		to := table.Placement{Processor: table.Processor{Name: p.Name, Instances: p.Instances}, Kind: table.Spread}
		if p.Placement == OnNode {
			to.Kind, to.Node = table.Fixed, p.Node
		}
		list = append(list, to)
	}
	return list
}

// hasEntries reports whether the address table has entries for a processor.
func (s *settings) hasEntries(i int) bool {
	p := &s.Processors[i]
	return p.Instances > 0 && p.Placement != EveryNode && p.With == i
}

// observe is called with what the failure detector has found.
func (n *Node) observe(e member.Event) {
	n.gone.look()
	switch e.Kind {
	case member.EventJoined, member.EventAlive:
		n.post(func(h *happened) { h.alive = append(h.alive, alive{node: e.Member.Name, alive: true}) })
	case member.EventDead, member.EventLeft:
		switch {
		case e.Kind == member.EventLeft:
			n.log.Info("topogen: a node has ended", slog.String("node", e.Member.Name))
		case n.ending.Load(): // the others end too, and not every failure detector tells a node that ends itself
			n.log.Info("topogen: a node has ended or cannot be reached", slog.String("node", e.Member.Name))
		default:
			n.log.Warn("topogen: a node cannot be reached", slog.String("node", e.Member.Name), slog.String("state", e.Kind.String()))
		}
		n.post(func(h *happened) {
			h.alive = append(h.alive, alive{node: e.Member.Name, left: e.Kind == member.EventLeft})
		})
	case member.EventDuplicate, member.EventReplaced:
		n.duplicates.add(n.log, time.Since(n.began), e.Member.Name)
		if e.Kind == member.EventReplaced && n.names.recheck != nil { // it is not the owner of the name
			n.names.end(&grpc.Refusal{Text: fmt.Sprintf("failure detection has found another process with the name %q", n.settings.node)})
		}
	case member.EventFenced, member.EventUnfenced:
		n.fence.majority(e.Kind == member.EventUnfenced)
		level, o := slog.LevelInfo, n.opened.Load()
		switch {
		case n.ending.Load(): // while the nodes end together, a majority is missing in good order
		case o == nil || o.lookup == nil:
			level = slog.LevelDebug // each node starts without a majority; waiting says for what it waits
		case e.Kind == member.EventFenced:
			level = slog.LevelWarn
		}
		n.log.Log(context.Background(), level, "topogen: this node is "+e.Kind.String(), slog.String("node", n.settings.node))
	}
}

// hasEnded reports whether a node has ended on purpose, as far as this node knows. At its
// own end it does not learn any more which of the others have ended before it.
func (n *Node) hasEnded(name string) bool {
	if n.ending.Load() {
		return true
	}
	if o := n.opened.Load(); o != nil && o.detector != nil {
		for _, m := range o.detector.Members() {
			if m.Name == name {
				return m.State == member.Left
			}
		}
	}
	return false
}

// watch passes changes of the address table on to the core, and ends this node if another
// process takes its name, or if the table fails.
func (n *Node) watch(where *lookup) {
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	go func() {
		if err := table.Superseded(ctx, n.table.Replica(), n.settings.node, n.boot); errors.Is(err, table.ErrSuperseded) {
			n.core.pool.Fail(&nodeError{n.settings.node, err})
		}
	}()
	go func() {
		select {
		case <-n.names.ended:
			n.core.pool.Fail(&nodeError{n.settings.node, n.names.why})
		case <-ctx.Done():
		}
	}()
	w := n.table.Replica().Watch(n.table.Replica().Revision())
	n.membersChanged(where)
	for {
		if _, err := w.Next(ctx); err != nil {
			if ctx.Err() == nil {
				n.core.pool.Fail(&nodeError{n.settings.node, fmt.Errorf("the address table: %w", err)})
			}
			return
		}
		n.membersChanged(where)
	}
}

func (n *Node) membersChanged(where *lookup) {
	n.links.follow(where.nodes(), n.settings.node)
	n.names.tableChanged(where.replica.Nodes()) // after follow, so that no link is at the address of a former process
	if n.hasAgreedToEnd() {
		n.endNoted.Do(n.noteEnd) // before this process ends, because Close of its instances may take long
	}
	n.post(func(h *happened) { h.members = true })
	n.gone.look()
}
