package broadcast

import (
	"bytes"

	"github.com/topogen/topogen/runtime/cluster/table"
)

// receive handles a message of another node.
func (c *core) receive(now int64, from string, m message) {
	switch m.kind {
	case kindCollect:
		c.takeCollect(from, &m)
	case kindState:
		if c.collected != nil && m.term == c.term {
			c.collected[from] = m.body
		}
	case kindInstall:
		c.takeInstall(from, &m)
	case kindChange:
		c.takeChange(from, &m)
	case kindAt:
		if c.follows(from, m.term) && (c.last.Term != m.term || c.last.Index < m.index) {
			c.send(from, message{kind: kindNeed, term: m.term, index: c.last.Index})
		}
	case kindAck:
		c.takeAck(from, &m)
	case kindNeed:
		if c.leads && !c.isNew(from) {
			c.synced[from] = false
			c.send(from, c.install())
		}
	case kindRefuse:
		if m.term >= c.term { // an equal term has another sequencer
			c.stepDown()
			c.term, c.sequencer = m.term, "" // the next tick begins a higher term, if self is the lowest node
		}
	case kindPropose, kindRead:
		if number, rest, err := readNumber(m.body); err == nil {
			c.propose(now, proposal{from, number, rest, m.kind == kindRead})
		}
	case kindResult:
		if r, err := readResult(&m); err == nil {
			c.results = append(c.results, r)
		}
	}
	c.advance(now)
}

// follows reports whether a node is the sequencer of a term, as far as this node knows. A
// node with a lower term, or a second sequencer of the same term, is refused.
func (c *core) follows(from string, term uint64) bool {
	if term < c.term || term == c.term && c.sequencer != from && c.sequencer != "" {
		c.send(from, message{kind: kindRefuse, term: c.term})
		return false
	}
	if term > c.term || c.sequencer == "" {
		c.stepDown()
		c.term, c.sequencer, c.installed = term, from, false
	}
	return true
}

// takeCollect answers a new sequencer with the state of this node.
func (c *core) takeCollect(from string, m *message) {
	if c.follows(from, m.term) {
		c.send(from, message{kindState, m.term, c.applied().Index, c.state.Append(nil)})
	}
}

// takeInstall replaces the state of this node by the state of the sequencer. If this node
// has the state already, it only acknowledges it. Before a restart of this node, another
// node may have used the same term, while the sequencer was alone. Then the term is
// refused, and the sequencer merges both states in a higher one.
func (c *core) takeInstall(from string, m *message) {
	if !c.follows(from, m.term) {
		return
	}
	switch {
	case c.last.Term != m.term || c.last.Index < m.index:
		s, err := table.ReadState(m.body)
		if err != nil || s.Revision().Index != m.index || s.Revision().Term > m.term {
			return // damaged: the sequencer repeats it
		}
		if !c.adopt(s) {
			return
		}
	case !c.installed && !bytes.Equal(c.state.Append(nil), m.body):
		c.send(from, message{kind: kindRefuse, term: c.term})
		return
	}
	c.installed = true
	c.send(from, message{kind: kindAck, term: m.term, index: m.index})
}

// takeChange logs a change, applies it, and acknowledges it.
func (c *core) takeChange(from string, m *message) {
	if !c.follows(from, m.term) {
		return
	}
	e, err := readEntry(m.body)
	switch {
	case err != nil || e.revision.Term != m.term || e.revision.Index != m.index:
		return
	case c.last == e.revision: // a repetition
	case c.last.Term != m.term || e.revision.Index != c.last.Index+1:
		c.send(from, message{kind: kindNeed, term: m.term, index: c.last.Index})
		return
	default:
		if !c.append(e) {
			return
		}
		c.applyEntry(e)
		c.shorten()
	}
	c.send(from, message{kind: kindAck, term: m.term, index: m.index})
}

// takeAck counts an acknowledgement.
func (c *core) takeAck(from string, m *message) {
	if !c.leads || m.term != c.term || c.isNew(from) {
		return
	}
	if f := c.flight; f != nil && m.index == f.entry.revision.Index {
		f.acks[from] = true
	}
	if c.synced[from] || m.index < c.applied().Index { // a late acknowledgement says nothing about the changes after it
		return
	}
	c.synced[from] = true
	if f := c.flight; f != nil && !f.acks[from] {
		c.send(from, c.change())
	}
}
