package broadcast

import (
	"maps"
	"slices"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// core is the protocol of a node. It has no clock, goroutine or network. Its methods
// append to out and results.
//
// The node with the lowest name among the nodes that are alive is the sequencer. When a
// node becomes the sequencer, it begins a new term: it collects the states of all nodes
// that are alive, merges them, and installs the result on all of them. Then it broadcasts
// one change after the other. Each node logs a change, applies it and acknowledges it. The
// sequencer answers when all nodes that are alive have acknowledged the change.
type core struct {
	self    string
	replica *table.Replica
	state   *table.State // of the replica
	log     storage
	err     error // of the log; the node must stop

	alive     []string // sorted, with self
	term      uint64   // highest term that this node knows
	sequencer string   // of this term; "": unknown
	installed bool     // the state is that of the sequencer, or follows it
	last      table.Revision

	collected map[string][]byte // states of the other nodes, while self collects; nil otherwise
	leads     bool              // self is the sequencer of term, and has installed its state
	synced    map[string]bool   // by node whose state is part of this term: it has acknowledged the result of the merge, or a change since
	flight    *flight           // the change that is being broadcast
	queue     []proposal
	size      int // bytes of the log since its snapshot

	recent  map[uint64]result // results by number, so that a repeated command is not applied twice
	numbers []uint64          // keys of recent, oldest first

	out     []outgoing
	results []result // for proposals of this node
}

const (
	queueMax  = 4096 // commands that wait for the sequencer
	recentMax = 4096 // results that are remembered
)

// outgoing is a message to a node.
type outgoing struct {
	to string
	message
}

// proposal is a command of a node.
type proposal struct {
	from   string
	number uint64
	data   []byte
	read   bool
}

// flight is a change that not all nodes have acknowledged.
type flight struct {
	entry *entry
	proposal
	acks map[string]bool
}

// see sets the nodes that are alive.
func (c *core) see(alive []string) {
	c.alive = append(slices.Clone(alive), c.self)
	slices.Sort(c.alive)
	c.alive = slices.Compact(c.alive)
}

// tick sets the nodes that are alive, and repeats messages that may be lost.
func (c *core) tick(now int64, alive []string) {
	c.see(alive)
	switch {
	case c.alive[0] != c.self:
		c.stepDown()
		if c.sequencer != c.alive[0] {
			c.send(c.alive[0], message{kind: kindNeed, term: c.term, index: c.last.Index})
		}
	case c.leads && !slices.ContainsFunc(c.others(), c.isNew):
		c.repeat()
	case c.collected == nil:
		c.stepDown()
		c.collect()
	default:
		for _, name := range c.others() {
			if c.collected[name] == nil {
				c.send(name, message{kind: kindCollect, term: c.term})
			}
		}
	}
	c.advance(now)
}

func (c *core) others() []string {
	return slices.DeleteFunc(slices.Clone(c.alive), func(name string) bool { return name == c.self })
}

// isNew reports whether the state of a node is not part of this term. Its process may have been alone, with a table of its own.
func (c *core) isNew(name string) bool {
	_, merged := c.synced[name]
	return !merged
}

func (c *core) send(to string, m message) { c.out = append(c.out, outgoing{to, m}) }

// collect begins a new term.
func (c *core) collect() {
	c.term, c.sequencer = c.term+1, c.self
	c.collected, c.leads = map[string][]byte{}, false
	for _, name := range c.others() {
		c.send(name, message{kind: kindCollect, term: c.term})
	}
}

// stepDown ends the role of the sequencer. The change in flight is in the log, so it is
// applied here. Whether the others have it is unknown.
func (c *core) stepDown() {
	c.collected, c.synced = nil, nil
	if !c.leads {
		return
	}
	c.leads = false
	if f := c.flight; f != nil {
		c.flight = nil
		c.applyEntry(f.entry)
		c.answer(f.proposal, result{number: f.number, status: statusLost})
	}
	for _, p := range c.queue {
		c.answer(p, result{number: p.number, status: statusRetry})
	}
	c.queue = nil
}

// repeat sends the state or the change to the nodes that have not acknowledged it. The
// other nodes learn the revision: a node that has restarted may lack changes that its
// previous process has acknowledged, or that were made while it was down.
func (c *core) repeat() {
	maps.DeleteFunc(c.synced, func(name string, _ bool) bool { return !slices.Contains(c.alive, name) })
	for _, name := range c.others() {
		switch {
		case !c.synced[name]:
			c.send(name, c.install())
		case c.flight != nil && !c.flight.acks[name]:
			c.send(name, c.change())
		case c.flight == nil:
			c.send(name, message{kind: kindAt, term: c.term, index: c.applied().Index})
		}
	}
}

func (c *core) install() message {
	return message{kindInstall, c.term, c.applied().Index, c.state.Append(nil)}
}

func (c *core) change() message {
	e := c.flight.entry
	return message{kindChange, c.term, e.revision.Index, e.append(nil)}
}

// applied returns the revision of the state. The log may have one entry more.
func (c *core) applied() table.Revision { return c.state.Revision() }

// advance finishes what is complete: the collection of states, and the change in flight.
// Then it begins the next change.
func (c *core) advance(now int64) {
	if c.collected != nil && !slices.ContainsFunc(c.others(), func(name string) bool { return c.collected[name] == nil }) {
		c.begin()
	}
	for c.leads && c.err == nil {
		if f := c.flight; f != nil {
			if slices.ContainsFunc(c.others(), func(name string) bool { return !f.acks[name] }) {
				return
			}
			c.flight = nil
			r := c.applyEntry(f.entry)
			c.answer(f.proposal, r)
			c.shorten()
		}
		if len(c.queue) == 0 {
			return
		}
		p := c.queue[0]
		c.queue = c.queue[1:]
		c.start(p, now)
	}
}

// begin merges the collected states, and becomes the sequencer.
func (c *core) begin() {
	s, err := table.ReadState(c.state.Append(nil))
	if err != nil {
		c.err = err
		return
	}
	states := []*table.State{s}
	for _, name := range c.others() {
		o, err := table.ReadState(c.collected[name])
		if err != nil {
			c.collected[name] = nil // asked again with the next tick
			return
		}
		states = append(states, o)
	}
	// The state with the highest revision is the base: its plan, nodes and leases win. A node that was alone may have a state
	// of a later term that has no plan, and so no places.
	next := table.Revision{Term: c.term}
	for _, s := range states {
		next.Index = max(next.Index, s.Revision().Index+1)
	}
	slices.SortStableFunc(states, func(a, b *table.State) int {
		switch {
		case a.HasPlan() == b.HasPlan():
			return compare(b.Revision(), a.Revision())
		case a.HasPlan():
			return -1
		}
		return 1
	})
	base := states[0]
	for _, o := range states {
		base.Merge(o, next)
	}
	c.collected, c.synced = nil, map[string]bool{}
	for _, name := range c.others() {
		c.synced[name] = false
	}
	if c.adopt(base) {
		c.leads = true
		c.repeat()
	}
}

// compare orders revisions of different terms.
func compare(a, b table.Revision) int {
	if a.Term != b.Term {
		if a.Term < b.Term {
			return -1
		}
		return 1
	}
	return a.Compare(b)
}

// adopt replaces the state, log first.
func (c *core) adopt(s *table.State) bool {
	b := s.Append(nil)
	if c.err = c.log.install(s.Revision(), b); c.err != nil {
		return false
	}
	c.state, c.last, c.size = s, s.Revision(), 0
	c.replica.Adopt(s)
	return true
}

// shorten replaces a long log by a snapshot.
func (c *core) shorten() {
	if c.size < logMax || c.err != nil {
		return
	}
	if c.err = c.log.install(c.applied(), c.state.Append(nil)); c.err == nil {
		c.size = 0
	}
}

// start logs and broadcasts a command.
func (c *core) start(p proposal, now int64) {
	if r, known := c.recent[p.number]; known {
		c.answer(p, r)
		return
	}
	if p.read {
		c.answer(p, result{number: p.number, revision: c.applied()})
		return
	}
	e := &entry{revision: table.Revision{Term: c.term, Index: c.last.Index + 1}, time: now, nonce: p.number, command: p.data}
	e.records = c.records(e)
	if !c.append(e) {
		return
	}
	c.flight = &flight{entry: e, proposal: p, acks: map[string]bool{}}
	for _, name := range c.others() {
		if c.synced[name] {
			c.send(name, c.change())
		}
	}
}

// records returns the moves of an entry in the document's form.
func (c *core) records(e *entry) (list []Record) {
	command, err := table.ReadCommand(e.command)
	if err != nil {
		return nil
	}
	c.state.Moves(command, recordsMax, func(processor string, instance int, from, to string) {
		list = append(list, Record{uint64(e.time), Number(processor), 0, uint32(instance), Number(from), Number(to)})
	})
	return list
}

// append writes an entry to the log.
func (c *core) append(e *entry) bool {
	if c.err = c.log.append(e); c.err != nil {
		return false
	}
	c.last = e.revision
	c.size += e.size()
	return true
}

// applyEntry applies an entry that is in the log.
func (c *core) applyEntry(e *entry) result {
	command, err := table.ReadCommand(e.command)
	if err != nil {
		command = &table.Command{} // a kind that is refused, on all nodes
	}
	r := result{number: e.nonce, revision: e.revision}
	r.outcome, _ = c.replica.ApplyTo(c.state, e.revision, e.time, command)
	c.remember(r)
	return r
}

func (c *core) remember(r result) {
	if c.recent == nil {
		c.recent = map[uint64]result{}
	}
	if _, known := c.recent[r.number]; !known {
		c.numbers = append(c.numbers, r.number)
	}
	c.recent[r.number] = r
	if len(c.numbers) > recentMax {
		delete(c.recent, c.numbers[0])
		c.numbers = c.numbers[1:]
	}
}

// answer answers a proposal.
func (c *core) answer(p proposal, r result) {
	if p.from == c.self {
		c.results = append(c.results, r)
		return
	}
	c.send(p.from, r.message())
}

// propose handles a command or a read.
func (c *core) propose(now int64, p proposal) {
	busy := c.flight != nil && c.flight.number == p.number || slices.ContainsFunc(c.queue, func(o proposal) bool { return o.number == p.number })
	_, known := c.recent[p.number]
	switch {
	case busy: // a repetition
	case !c.leads && known: // it was in flight when this node lost its role
		c.answer(p, result{number: p.number, status: statusLost})
	case !c.leads || len(c.queue) >= queueMax, slices.ContainsFunc(c.others(), func(name string) bool { return !c.synced[name] }):
		// A node that was alone may be the sequencer of a table of its own. When it sees others, it must merge its state with
		// theirs first, and changes in between would be lost.
		c.answer(p, result{number: p.number, status: statusRetry})
	default:
		c.queue = append(c.queue, p)
		c.advance(now)
	}
}
