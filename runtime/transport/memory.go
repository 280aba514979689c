package transport

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// MemoryOptions limits the queue from one node to another, for each group and class.
type MemoryOptions struct {
	QueueMessages int // default 16384
	QueueBytes    int // default 128 MiB; a larger message may be queued alone
}

// Memory connects nodes of one process, for tests and benchmarks of code that uses a
// transport. It copies nothing: the receiver gets the payload that was sent. There is a
// goroutine for each direction between two nodes.
type Memory struct {
	options MemoryOptions
	mu      sync.Mutex
	nodes   map[string]*memoryNode
	cut     map[[2]string]bool
}

// NewMemory returns a Memory without nodes.
func NewMemory(o MemoryOptions) *Memory {
	if o.QueueMessages <= 0 {
		o.QueueMessages = QueueMessages
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = QueueBytes
	}
	return &Memory{options: o, nodes: make(map[string]*memoryNode), cut: make(map[[2]string]bool)}
}

// Join returns the transport of a node. All nodes of a Memory reach each other,
// whatever SetPeer says. RemovePeer stops sending until SetPeer is called again. After
// Close the name can be used again.
func (m *Memory) Join(name string) (Transport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes[name] != nil {
		return nil, fmt.Errorf("transport: a node %q has already joined", name)
	}
	n := &memoryNode{
		memory: m, name: name,
		links: make(map[string]*memoryLink), peers: make(map[string]*Counters), removed: make(map[string]bool),
	}
	m.nodes[name] = n
	return n, nil
}

// Cut cuts or restores the link from one node to another, in this direction only.
// Messages on a cut link are lost and counted as dropped.
func (m *Memory) Cut(from, to string, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cut {
		m.cut[[2]string{from, to}] = true
	} else {
		delete(m.cut, [2]string{from, to})
	}
}

// enter returns the receiving node, or nil. The node cannot close until receiving.Done
// is called.
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

// memoryNode is the transport of one node of a Memory.
type memoryNode struct {
	memory   *Memory
	name     string
	handlers Handlers

	mu        sync.Mutex
	closed    bool
	links     map[string]*memoryLink // by receiving node
	peers     map[string]*Counters   // by peer
	removed   map[string]bool
	running   sync.WaitGroup // the goroutines of links, also of removed ones
	receiving sync.WaitGroup // calls that deliver to this node
}

func (n *memoryNode) Send(to string, messages ...Message) {
	n.mu.Lock()
	l := n.links[to]
	if l == nil && !n.closed && !n.removed[to] && to != n.name {
		l = newMemoryLink(n, to, n.counters(to))
		n.links[to] = l
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

// PeerAddress returns the name itself, for a node that has sent a message.
func (n *memoryNode) PeerAddress(name string) (address string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.peers[name]
	return name, c != nil && c.Received.Load()+c.Unclaimed.Load() > 0
}

func (n *memoryNode) RemovePeer(name string) {
	n.mu.Lock()
	n.removed[name] = true
	l := n.links[name]
	delete(n.links, name)
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
		if l := n.links[name]; l != nil {
			p.Connected, p.Queued = true, l.waiting()
		}
		s.Traffic.Add(p.Traffic)
		s.Peers = append(s.Peers, p)
	}
	return s
}

func (n *memoryNode) Close() error {
	n.mu.Lock()
	closed, links := n.closed, n.links
	n.closed, n.links = true, nil
	n.mu.Unlock()
	if closed {
		return nil
	}
	for _, l := range links {
		l.end()
	}
	n.running.Wait()
	n.receiving.Wait()
	n.memory.mu.Lock()
	delete(n.memory.nodes, n.name)
	n.memory.mu.Unlock()
	return nil
}

// counters returns the counters of a peer. The lock must be held.
func (n *memoryNode) counters(peer string) *Counters {
	if n.peers[peer] == nil {
		n.peers[peer] = new(Counters)
	}
	return n.peers[peer]
}

// enter reports whether the node is open. If so, Close waits for receiving.Done.
func (n *memoryNode) enter() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.receiving.Add(1)
	}
	return !n.closed
}
