package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/piper/border"
)

// View is what a node knows about its cluster at one moment. It does not change, and
// shares nothing with the node. Other nodes may know something else at that moment.
//
// The instances of the topology are not in it, because there may be very many. See
// [View.Containers].
type View struct {
	Topology string    `json:"topology"`
	Plan     string    `json:"plan"` // hash, the same on all nodes
	Node     string    `json:"node"` // this node
	Boot     string    `json:"boot"` // id of this start of the process, as in Nodes
	Address  string    `json:"address"`
	Time     time.Time `json:"time"`  // of the view
	State    string    `json:"state"` // of this node: "starting", "running", "draining" or "ended"
	// Fenced says that this node reaches no majority of the nodes, or calls no handlers because it has
	// lost its lease.
	Fenced bool `json:"fenced"`
	// Coordinator is the node that decides when the topology has finished, as far as this
	// node knows; "" while it starts.
	Coordinator string `json:"coordinator"`
	Revision    string `json:"revision"` // of the address table on this node: TERM.INDEX.POSITION

	Nodes      []NodeView      `json:"nodes"`      // by name, with this node
	Clients    int             `json:"clients"`    // clients that are connected to this node
	Processors []ProcessorView `json:"processors"` // by index in the topology file
	Edges      []EdgeView      `json:"edges"`      // by index in the topology file
	Moves      []Move          `json:"moves"`      // instances that change their node now

	lookup *lookup
}

// NodeView is a node of the cluster.
type NodeView struct {
	Name    string   `json:"name"`
	Address string   `json:"address"`
	Roles   []string `json:"roles"`
	Boot    string   `json:"boot"`  // id of the start of its process; "" if none has joined
	State   string   `json:"state"` // in the address table: "joining", "member", "leaving" or "left"; "" if it is not in it
	// Detector is what failure detection says: "alive", "probe-failed", "suspected", "dead"
	// or "left"; "" if it does not know the node.
	Detector      string     `json:"detector"`
	DetectorSince *time.Time `json:"detector_since"` // nil if Detector is ""
	Found         bool       `json:"found"`          // a process of the node has answered this node
	Reachable     bool       `json:"reachable"`      // messages are sent to it now
	Draining      bool       `json:"draining"`
	Instances     int        `json:"instances"` // that it runs, or must run
	Traffic       Traffic    `json:"traffic"`   // between this node and the other one; zero for this node
}

// Traffic is what this node has exchanged with another one, since its process began.
type Traffic struct {
	MessagesSent     uint64 `json:"messages_sent"` // in the session: chunks of messages, confirmations and replies
	MessagesReceived uint64 `json:"messages_received"`
	BytesSent        uint64 `json:"bytes_sent"` // with headers and repetitions
	BytesReceived    uint64 `json:"bytes_received"`
	FramesSent       uint64 `json:"frames_sent"`
	FramesReceived   uint64 `json:"frames_received"`
	FramesResent     uint64 `json:"frames_resent"`
	Pending          uint64 `json:"pending"` // messages of the session that the other node has not acknowledged

	// Kept and Dropped count messages of edges. Kept ones were sent by instances of this
	// node, and the other node has not confirmed that they were handled. Dropped ones
	// could not be delivered.
	Kept    uint64 `json:"kept"`
	Dropped uint64 `json:"dropped"`

	RTT time.Duration `json:"rtt_ns"` // smoothed round trip; 0: not measured yet
}

// ProcessorView says where the instances of a processor are.
type ProcessorView struct {
	Name      string `json:"name"`
	Placement string `json:"placement"` // "spread", "every-node", "node" or "external"
	Instances int    `json:"instances"` // in the cluster; on each node with every-node; 0 if external
	Here      int    `json:"here"`      // instances on this node
}

// EdgeView has the figures of an edge on this node: Sent = Handled + Dropped + Pending.
type EdgeView struct {
	Name    string `json:"name"`    // as in the topology file
	Sent    uint64 `json:"sent"`    // by instances of this node, to instances of any node
	Handled uint64 `json:"handled"` // among Sent, on any node
	Dropped uint64 `json:"dropped"` // among Sent
	Pending uint64 `json:"pending"` // among Sent: queued, on their way, or not confirmed
	Arrived uint64 `json:"arrived"` // from other nodes, for instances of this node
	Waiting uint64 `json:"waiting"` // among Arrived: not handled yet
}

// Move is an instance that changes its node. There are none yet: this version moves no
// instance that runs.
type Move struct {
	Container
	To    string `json:"to"`
	State string `json:"state"`
}

// The states of a node in View.State.
const (
	stateStarting = "starting"
	stateRunning  = "running"
	stateDraining = "draining"
	stateEnded    = "ended"
)

// opened is what a view needs of a node. The parts are nil before the node has opened them.
type opened struct {
	table    table.Table
	detector member.Detector
	lookup   *lookup
	pool     *border.Border
}

// replica is the copy of the address table, or nil.
func (o *opened) replica() *table.Replica {
	switch {
	case o.table != nil:
		return o.table.Replica()
	case o.lookup != nil: // of a client
		return o.lookup.replica
	}
	return nil
}

// coreView is the core's part of a view.
type coreView struct {
	draining    bool
	coordinator string
	peers       map[string]peerView
}

type peerView struct {
	found, reachable, draining bool
	kept, dropped              uint64
	session                    session.Stats
}

// view returns the core's part of a view. It takes a time that grows with the number of
// nodes only.
func (c *core) view() coreView {
	v := coreView{draining: c.draining, coordinator: c.role.coordinator(), peers: make(map[string]peerView, len(c.peers))}
	for name, p := range c.peers {
		if p.forgotten {
			continue
		}
		v.peers[name] = peerView{
			found: p.found, reachable: p.reachable && !p.silent && !p.left, draining: p.draining && !p.left,
			kept: p.kept, dropped: p.dropped, session: p.session.Stats(),
		}
	}
	return v
}

// View returns what the node knows now, or nil for a nil node: then the process runs the
// whole topology. It may be called at any time, also before Begin and after End.
func (n *Node) View() *View {
	if n == nil {
		return nil
	}
	s := &n.settings
	v := &View{
		Topology: s.Topology, Plan: s.Plan, Node: s.node, Boot: n.boot.String(), Address: s.address,
		Time: time.Now(), State: stateStarting, Moves: []Move{}, Nodes: []NodeView{},
	}
	o := n.opened.Load()
	if o == nil {
		o = &opened{}
	}
	v.lookup = o.lookup
	core := n.askCore(v, o)
	v.Coordinator = core.coordinator
	if o.detector != nil {
		v.Fenced = o.detector.Fenced() || n.fence.isClosed()
	}
	if r := o.replica(); r != nil {
		v.Revision = r.Revision().String()
	}
	v.addNodes(o, core)
	if n.client == nil {
		v.Clients = n.clients.connected()
	} else {
		for i := range v.Nodes {
			v.Nodes[i].Reachable = n.client.transport.reaches(v.Nodes[i].Name)
		}
	}
	v.addProcessors(s)
	v.addEdges(s, o)
	return v
}

// askCore sets the state of the node. It returns an empty value while the core does not
// run yet.
func (n *Node) askCore(v *View, o *opened) (core coreView) {
	if o.lookup == nil {
		return core
	}
	select {
	case <-n.done:
		return n.lastView(v)
	default:
	}
	answer := make(chan coreView, 1) // the core does not wait for the reader
	n.post(func(h *happened) { h.views = append(h.views, answer) })
	select {
	case core = <-answer:
	case <-n.done:
		return n.lastView(v)
	}
	v.State = stateRunning
	if core.draining {
		v.State = stateDraining
	}
	return core
}

// lastView is the core's part of a view after the end.
func (n *Node) lastView(v *View) coreView {
	n.running.Lock()
	defer n.running.Unlock()
	v.State = stateEnded
	return n.core.view()
}

// addNodes collects the nodes that the table, failure detection or the core knows.
func (v *View) addNodes(o *opened, core coreView) {
	nodes := map[string]*NodeView{}
	get := func(name string) *NodeView {
		if nodes[name] == nil {
			nodes[name] = &NodeView{Name: name, Roles: []string{}}
		}
		return nodes[name]
	}
	if r := o.replica(); r != nil {
		for _, t := range r.Nodes() {
			n := get(t.Name)
			n.Address, n.State, n.Roles = t.Address, t.State.String(), append(n.Roles, t.Roles...)
			if t.Boot != 0 {
				n.Boot = t.Boot.String()
			}
		}
	}
	if o.detector != nil {
		now := time.Now() // not the start, because the detector's clock does not count the time in which the computer slept
		elapsed := now.Sub(o.detector.Started())
		for _, m := range o.detector.Members() {
			if m.State == member.Left && nodes[m.Name] == nil && o.lookup != nil {
				continue // it was removed from the table
			}
			n := get(m.Name)
			n.Detector, n.DetectorSince = m.State.String(), new(now.Add(m.Changed-elapsed))
			if n.Address == "" {
				n.Address = m.Address
			}
		}
	}
	for name, p := range core.peers {
		get(name).addPeer(p)
	}
	if !isClient(v.Node) {
		me := get(v.Node)
		me.Address, me.Found, me.Reachable, me.Draining = v.Address, true, true, core.draining
	}
	if o.lookup != nil {
		o.lookup.count(func(node string) { get(node).Instances++ })
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		v.Nodes = append(v.Nodes, *nodes[name])
	}
}

func (n *NodeView) addPeer(p peerView) {
	s := &p.session
	n.Found, n.Reachable, n.Draining = p.found, p.reachable, p.draining
	n.Traffic = Traffic{
		MessagesSent: s.MessagesQueuedTotal, MessagesReceived: s.MessagesReceived,
		BytesSent: s.BytesSent, BytesReceived: s.BytesReceived,
		FramesSent: s.FramesSent, FramesReceived: s.FramesReceived, FramesResent: s.FramesResent,
		Pending: s.Pending, Kept: p.kept, Dropped: p.dropped, RTT: s.RTT,
	}
}

func (v *View) addProcessors(s *settings) {
	v.Processors = []ProcessorView{}
	for i := range s.Processors {
		p := &s.Processors[i]
		w := ProcessorView{Name: p.Name, Placement: p.Placement.String(), Instances: p.Instances}
		if p.Instances == 0 {
			w.Placement = "external"
		}
		if v.lookup != nil {
			for j := range p.Instances {
				if v.lookup.isHere(i, j) {
					w.Here++
				}
			}
		}
		v.Processors = append(v.Processors, w)
	}
}

func (v *View) addEdges(s *settings, o *opened) {
	v.Edges = make([]EdgeView, len(s.Edges))
	for i, name := range s.Edges {
		v.Edges[i].Name = name
	}
	if o.pool == nil {
		return
	}
	for i, e := range o.pool.Snapshot().Edges {
		if i < len(v.Edges) {
			v.Edges[i] = EdgeView{
				Name: v.Edges[i].Name, Sent: e.Sent, Handled: e.Received, Dropped: e.Dropped, Pending: uint64(max(e.Len, 0)),
				Arrived: e.Arrived, Waiting: uint64(max(e.Waiting, 0)),
			}
		}
	}
}
