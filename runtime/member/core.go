package member

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Node is how a node introduces itself.
type Node struct {
	Name    string // 1 to NameMax bytes, unique in the cluster
	Address string // where its transport listens, at most AddressMax bytes
	Meta    []byte // at most MetaMax bytes for other nodes to read

	// Boot identifies the process, 1 to 2^62. It should be higher than those of all
	// former processes with this name; the time of the start in nanoseconds is. If it is
	// not, the node raises it when it joins.
	Boot uint64
}

// Outgoing is a message that the owner of a [Core] must send.
type Outgoing struct {
	To      string
	Address string // where To listens
	Payload []byte
}

// Stats are counts since the start.
type Stats struct {
	Sent, SentBytes uint64 // messages for other nodes, and their bytes
	Received        uint64 // messages of other nodes

	Malformed   uint64 // messages that are not in the format of this version
	Former      uint64 // messages of a process that another one with its name has replaced
	Unknown     uint64 // messages of a node that is not in the list of members
	Full        uint64 // claims about unknown nodes that were dropped because the list is full
	RelaysFull  uint64 // requests to probe a node that were dropped because too many were pending
	Refutations uint64 // suspicions about this node that it refuted
	Pauses      uint64 // times that this process did not run for long
	Syncs       uint64 // requests for all claims of another node
}

// Core is the state of failure detection on one node. It is a state machine: it has no
// goroutine, clock, source of randomness or network of its own. Its owner makes one call at
// a time, passes the time since the start, and after each call takes the effects with
// [Core.Take]. Tick must be called when the time [Core.Next] has come, or soon after: a
// later call means that the process did not run, and all timeouts are extended by this
// pause.
type Core struct {
	settings settings
	rng      *rand.Rand
	now      time.Duration
	due      time.Duration // when the next Tick must be called

	self  *peer
	peers map[string]*peer // all but self
	ring  []*peer          // the same, in the order in which they are probed
	down  []*peer          // members that are Suspected, Dead or Left
	count [Left + 1]int    // peers in each state

	position int           // in ring, of the next probe
	probeAt  time.Duration // when the next probe is sent
	probes   []*probe      // without a result yet, in the order in which they began
	relays   []relay       // probes for other nodes
	sequence uint64        // of the last probe
	health   int           // 0 is healthy
	sweepAt  time.Duration // when the next sweep is allowed

	seeds      []string // first members, for joining
	joined     bool     // a member has answered, or there was none to ask
	joinAt     time.Duration
	joinWait   time.Duration
	answeredBy string  // the member that has answered
	announcing bool    // an answer is being handled
	announces  []*peer // members that do not know yet that this node has joined

	rumors   [2][]*peer // claims that are still spread: urgent ones, others
	gossipAt time.Duration

	digest     uint64 // of all claims
	mismatches int    // answers in a row whose digest differed
	settled    bool   // a digest was equal since the node joined
	syncAt     time.Duration
	syncWait   time.Duration

	reconnectAt time.Duration
	fenced      bool
	cutOff      bool // reaches no majority, whatever the fence
	leaving     bool
	farewells   int // acks of leave messages that are still missing
	replaced    bool
	owner       func() bool // see Settings.Owner

	outgoing []Outgoing
	events   []Event
	stats    Stats
}

// peer is a member in the list of a node.
type peer struct {
	record                  // the greatest claim
	state     State         // what this node makes of it
	changed   time.Duration // when state last changed
	since     time.Duration // when this boot id was first heard of
	ended     time.Duration // Dead, Left: when, by the claim
	first     bool          // a first member
	cutOff    bool          // its last message said that it reaches no majority
	duplicate bool          // two processes with this boot id's name were reported

	probe *probe // without a result yet

	deadline  time.Duration // Suspected: when it is Dead
	suspected time.Duration // Suspected: since when, without pauses of this node
	mine      bool          // Suspected: this node could not reach it
	asked     int           // Suspected: pings after the deadline
	spreadAt  time.Duration // Suspected: when the others learn of it; 0: they have
	toldAt    time.Duration // when it was last told what this node knows about it
	syncedAt  time.Duration // when it last got all claims

	transmissions int  // how often the claim is still sent
	urgent        bool // in which list of rumors
}

// membersMax limits the list of members: ten times the largest cluster that is tested,
// about 3 MB. Names that a faulty member invents do not fill the memory.
const membersMax = 10_000

// forever is a time that does not come.
const forever = time.Duration(math.MaxInt64)

// NewCore returns the core of a node. The first members are addresses by name; they may
// include the node itself. A node without other first members is alone until another one
// joins. All random decisions use rng.
func NewCore(n Node, first map[string]string, c Config, rng *rand.Rand) (*Core, error) {
	if err := Check(n, first, c); err != nil {
		return nil, err
	}
	core := &Core{settings: c.complete(), rng: rng, peers: make(map[string]*peer), owner: func() bool { return false }}
	core.self = &peer{record: record{name: n.Name, address: n.Address, meta: n.Meta, boot: n.Boot}}
	core.digest = core.self.record.digest()
	for name, address := range first {
		if name != n.Name {
			core.seeds = append(core.seeds, name)
			core.add(&peer{record: record{name: name, address: address}, first: true, state: Dead})
		}
	}
	slices.Sort(core.seeds)
	slices.SortFunc(core.ring, func(a, b *peer) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(core.down, func(a, b *peer) int { return strings.Compare(a.name, b.name) })
	core.rng.Shuffle(len(core.ring), func(i, j int) { core.ring[i], core.ring[j] = core.ring[j], core.ring[i] })
	core.joined = len(core.seeds) == 0
	core.joinWait = core.settings.Interval
	core.syncWait = 2 * core.settings.Interval
	core.probeAt = time.Duration(rng.Int64N(int64(core.settings.Interval)))
	core.checkFence()
	core.due = core.next()
	return core, nil
}

// Check returns all mistakes in what a node is started with, joined in one error; for
// implementations of [Detector].
func Check(n Node, first map[string]string, c Config) error {
	names := make([]string, 0, len(first))
	for name := range first {
		names = append(names, name)
	}
	slices.Sort(names)
	if err := c.Check(names); err != nil {
		return err
	}
	var wrong mistakes
	if len(first) > membersMax {
		wrong.add("there must be at most %d first members, got %d", membersMax, len(first))
	}
	for _, name := range append(names, n.Name) {
		address := first[name]
		if name == n.Name {
			address = n.Address
		}
		if len(name) == 0 || len(name) > NameMax {
			wrong.add("the name of a node must have 1 to %d bytes, got %q", NameMax, name)
		}
		if len(address) > AddressMax {
			wrong.add("the address of %s must have at most %d bytes, got %d", name, AddressMax, len(address))
		}
	}
	if len(n.Meta) > MetaMax {
		wrong.add("the meta data of a node must have at most %d bytes, got %d", MetaMax, len(n.Meta))
	}
	if n.Boot == 0 || n.Boot > countMax {
		wrong.add("the boot id must be between 1 and %d, got %d", uint64(countMax), n.Boot)
	}
	return wrong.err()
}

// Tick does what is due, in the order of the document, section 3.2, and then the work
// that the document does not have: probes for other nodes, joining, news, and forgetting.
func (c *Core) Tick(now time.Duration) {
	c.advance(now)
	if c.stopped() {
		return
	}
	c.checkDirectProbes()
	c.checkIndirectProbes()
	c.checkSuspicions()
	c.checkFence()
	c.sendProbe()

	c.checkRelays()
	c.join()
	c.reconnect()
	c.gossip()
	c.forget()
	c.due = c.next()
}

// Step handles a message of another node. The transport must have verified the sender's
// name. The error says why a message was dropped; it is ErrMalformed or nil.
func (c *Core) Step(now time.Duration, from string, payload []byte) error {
	c.advance(now)
	c.stats.Received++
	m, err := decodeMessage(payload)
	if err != nil {
		c.stats.Malformed++
		return fmt.Errorf("from %s: %w", from, err)
	}
	if c.replaced || from == c.self.name {
		return nil
	}
	c.handle(from, &m)
	c.checkFence()
	c.due = c.next()
	return nil
}

// Heard reports that a message of a member arrived outside of failure detection. It counts
// as a sign of life, unless the member has said that it cannot hear others.
func (c *Core) Heard(now time.Duration, name string) {
	c.advance(now)
	if p := c.peers[name]; p != nil && !p.cutOff && !c.stopped() {
		c.heard(p)
		c.due = c.next()
	}
}

// Next returns when Tick must be called.
func (c *Core) Next() time.Duration { return c.due }

// Take returns the messages and events since the last call.
func (c *Core) Take() (messages []Outgoing, events []Event) {
	messages, events = c.outgoing, c.events
	c.outgoing, c.events = nil, nil
	return messages, events
}

// Fenced reports whether the node is fenced.
func (c *Core) Fenced() bool { return c.fenced }

// Stats returns the counts so far.
func (c *Core) Stats() Stats { return c.stats }

// Members returns all members, including the node itself, by name.
func (c *Core) Members() []Member {
	list := make([]Member, 0, len(c.ring)+1)
	list = append(list, c.self.member())
	for _, p := range c.ring {
		list = append(list, p.member())
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (p *peer) member() Member {
	return Member{
		Name: p.name, Address: p.address, Meta: p.meta, Boot: p.boot, Incarnation: p.incarnation,
		State: p.state, Changed: p.changed,
	}
}

func (c *Core) stopped() bool { return c.replaced || c.leaving }

func (c *Core) event(k EventKind, p *peer) {
	c.events = append(c.events, Event{Kind: k, Member: p.member()})
}

// next returns the earliest time at which Tick has work.
func (c *Core) next() time.Duration {
	if c.stopped() {
		return forever
	}
	at := c.probeAt
	for _, p := range c.probes {
		at = min(at, p.again, p.deadline)
	}
	for i := range c.relays {
		at = min(at, c.relays[i].again, c.relays[i].deadline)
	}
	for _, p := range c.down {
		if p.state == Suspected {
			at = min(at, p.deadline)
			if p.mine {
				at = min(at, p.toldAt+c.tellEvery())
			}
			if p.spreadAt > 0 {
				at = min(at, p.spreadAt)
			}
		}
	}
	if !c.joined {
		at = min(at, c.joinAt)
	}
	if len(c.rumors[0]) > 0 || len(c.announces) > 0 {
		at = min(at, c.gossipAt)
	}
	return at
}
