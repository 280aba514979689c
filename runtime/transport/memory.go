package transport

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// What waits on one link of a [Memory], if its maker does not say otherwise.
const (
	queueMessages = 16384    // some milliseconds of a busy group
	queueBytes    = 64 << 20 // as for a peer over the network
)

// MemoryOptions bound what waits from one node to another.
type MemoryOptions struct {
	QueueMessages int // default 16384
	QueueBytes    int // default 64 MiB; one message that is larger goes alone
}

// Memory joins nodes of one process: for tests and benchmarks of what runs on a
// transport. Nothing is copied: a payload that was sent is what is received.
// There is a goroutine for each direction between two nodes.
type Memory struct {
	options MemoryOptions
	mu      sync.Mutex
	nodes   map[string]*memoryNode
	cut     map[[2]string]bool
}

// NewMemory returns one without nodes.
func NewMemory(o MemoryOptions) *Memory {
	if o.QueueMessages <= 0 {
		o.QueueMessages = queueMessages
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = queueBytes
	}
	return &Memory{options: o, nodes: make(map[string]*memoryNode), cut: make(map[[2]string]bool)}
}

// Join returns the transport of a node. All nodes of a Memory reach each other,
// whatever SetPeer says; RemovePeer forbids sending until SetPeer is called again.
// The name is free again when the transport was closed.
func (m *Memory) Join(name string) (Transport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[name] != nil {
		return nil, fmt.Errorf("transport: there is a node %q already", name)
	}
	n := &memoryNode{
		memory: m, name: name,
		lanes: make(map[string]*lane), peers: make(map[string]*Counters), removed: make(map[string]bool),
	}
	m.nodes[name] = n
	return n, nil
}

// Cut cuts or mends the link from one node to another, in this direction alone:
// what is sent is lost, and counted as dropped.
func (m *Memory) Cut(from, to string, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cut {
		m.cut[[2]string{from, to}] = true
	} else {
		delete(m.cut, [2]string{from, to})
	}
}

// enter returns a node that takes messages from another, until leave; nil where
// there is none.
func (m *Memory) enter(from, to string) *memoryNode {
	m.mu.Lock()
	n := m.nodes[to]
	if m.cut[[2]string{from, to}] {
		n = nil
	}
	m.mu.Unlock()
	if n == nil || !n.enter() {
		return nil
	}
	return n
}

// memoryNode is a node's end of a Memory.
type memoryNode struct {
	memory   *Memory
	name     string
	handlers Handlers

	mu      sync.Mutex
	closed  bool
	lanes   map[string]*lane     // to whom something was sent
	peers   map[string]*Counters // all it has had to do with
	removed map[string]bool
	running sync.WaitGroup // the goroutines of lanes, removed ones too
	inside  sync.WaitGroup // those who are in a receive of this node
}

func (n *memoryNode) Send(to string, messages ...Message) {
	n.mu.Lock()
	l := n.lanes[to]
	if l == nil && !n.closed && !n.removed[to] && to != n.name {
		l = newLane(n, to, n.counters(to))
		n.lanes[to] = l
	}
	var c *Counters
	if l == nil {
		c = n.counters(to)
	}
	n.mu.Unlock()
	if l == nil {
		c.Dropped.Add(uint64(len(messages)))
		return
	}
	l.add(messages)
}

func (n *memoryNode) Handle(group uint64, receive func(string, [][]byte)) {
	n.handlers.Set(group, receive)
}

func (n *memoryNode) SetPeer(name, _ string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.removed, name)
}

func (n *memoryNode) RemovePeer(name string) {
	n.mu.Lock()
	n.removed[name] = true
	l := n.lanes[name]
	delete(n.lanes, name)
	n.mu.Unlock()
	if l != nil {
		l.end()
	}
}

func (n *memoryNode) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	var s Stats
	for _, name := range slices.Sorted(maps.Keys(n.peers)) {
		p := PeerStats{Name: name, Traffic: n.peers[name].Traffic()}
		if l := n.lanes[name]; l != nil {
			p.Connected, p.Queued = true, l.waiting()
		}
		s.Traffic.Add(p.Traffic)
		s.Peers = append(s.Peers, p)
	}
	return s
}

func (n *memoryNode) Close() error {
	n.mu.Lock()
	closed, lanes := n.closed, n.lanes
	n.closed, n.lanes = true, nil
	n.mu.Unlock()
	if closed {
		return nil
	}
	for _, l := range lanes {
		l.end()
	}
	n.running.Wait()
	n.inside.Wait()
	n.memory.mu.Lock()
	delete(n.memory.nodes, n.name)
	n.memory.mu.Unlock()
	return nil
}

// counters returns those of a peer; n is locked.
func (n *memoryNode) counters(peer string) *Counters {
	if n.peers[peer] == nil {
		n.peers[peer] = new(Counters)
	}
	return n.peers[peer]
}

// enter keeps Close from returning until inside.Done, unless it is under way.
func (n *memoryNode) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.inside.Add(1)
	}
	return !n.closed
}

// lane is the way from one node to another.
type lane struct {
	node  *memoryNode
	to    string
	count *Counters
	wake  chan struct{}

	mu       sync.Mutex
	queue    []Message
	messages int // with those that are being received
	bytes    int
	closed   bool
}

func newLane(n *memoryNode, to string, c *Counters) *lane {
	l := &lane{node: n, to: to, count: c, wake: make(chan struct{}, 1)}
	n.running.Go(l.run)
	return l
}

func (l *lane) add(messages []Message) {
	o := l.node.memory.options
	l.mu.Lock()
	taken := 0
	for _, m := range messages {
		fits := l.messages < o.QueueMessages && l.bytes+len(m.Payload) <= o.QueueBytes || l.messages == 0
		if l.closed || !fits {
			break
		}
		l.queue = append(l.queue, m)
		l.messages++
		l.bytes += len(m.Payload)
		taken++
	}
	l.mu.Unlock()
	l.count.Dropped.Add(uint64(len(messages) - taken))
	if taken > 0 {
		l.ring()
	}
}

func (l *lane) ring() {
	select {
	case l.wake <- struct{}{}:
	default: // rung already
	}
}

func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages
}

// end lets what waits fall, and the goroutine end.
func (l *lane) end() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.ring()
}

// run hands over what waits, all at once.
func (l *lane) run() {
	var batch []Message
	for range l.wake {
		l.mu.Lock()
		batch, l.queue = l.queue, batch[:0]
		closed := l.closed
		l.mu.Unlock()
		if closed {
			l.count.Dropped.Add(uint64(len(batch)))
			l.done(batch)
			return
		}
		l.deliver(batch)
		l.done(batch)
	}
}

// done makes room for as many as the batch has.
func (l *lane) done(batch []Message) {
	size := 0
	for i := range batch {
		size += len(batch[i].Payload)
	}
	clear(batch) // the payloads belong to others
	l.mu.Lock()
	l.messages -= len(batch)
	l.bytes -= size
	l.mu.Unlock()
}

// deliver gives a batch to the handlers of the other node, those in a row that
// are for one group at once.
func (l *lane) deliver(batch []Message) {
	if len(batch) == 0 {
		return
	}
	to := l.node.memory.enter(l.node.name, l.to)
	if to == nil {
		l.count.Dropped.Add(uint64(len(batch)))
		return
	}
	defer to.inside.Done()
	to.mu.Lock()
	c := to.counters(l.node.name)
	to.mu.Unlock()
	for len(batch) > 0 {
		n, size := 1, 0
		for n < len(batch) && batch[n].Group == batch[0].Group {
			n++
		}
		payloads := make([][]byte, n)
		for i := range payloads {
			payloads[i] = batch[i].Payload
			size += len(batch[i].Payload)
		}
		l.count.Sent.Add(uint64(n))
		l.count.SentBytes.Add(uint64(size))
		to.handlers.Receive(l.node.name, batch[0].Group, payloads, c)
		batch = batch[n:]
	}
}
