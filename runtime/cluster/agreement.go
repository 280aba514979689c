package cluster

import (
	"fmt"
	"slices"

	"github.com/topogen/topogen/runtime/piper"
)

// agreement decides when a group of processors has nothing left to do on any node.
//
// A group that is quiet on one node may get messages from another one. A node counts the
// turns of the group, and a message counts on its sending node until it was handled. So
// the group is quiet on all nodes at one moment if each node says twice that it is quiet,
// the second time after all first times, with the same number of turns. This is the
// method of Mattern (Algorithms for distributed termination detection, 1987), with turns
// in place of message counts.
//
// The coordinator, the first member by name, collects the reports of the nodes, and writes
// into the address table which phases of groups have ended (record.go). A group
// that it has found quiet remains quiet, so it does no harm if two nodes are coordinators for some time.
type agreement struct {
	core   *nodeCore
	groups []groupAgreement
	record record
}

// statusMax is up to how many messages in a session groups are reported in it.
const statusMax = 1 << 17

type groupAgreement struct {
	agreed  uint8                   // the last phase that was agreed upon, as far as this node has read it in the table
	status  map[string]groupMessage // by node: its last report that the group is quiet
	round   uint64
	phase   uint8             // of the round
	asked   map[string]uint32 // by node: the turns before the round, for nodes that have not answered; nil without a round
	changed bool              // the group was not quiet all the time
	doubts  int               // chunks for its instances that were dropped and may still be handled
	owed    bool              // the coordinator must be told that the group is quiet, when it reads what it has got
	decided decision          // that is not in the table yet
}

func newAgreement(c *nodeCore, groups int) *agreement {
	return &agreement{core: c, groups: make([]groupAgreement, groups)}
}

// quiet is called when a group is quiet on this node.
func (a *agreement) quiet(group int) {
	g := &a.groups[group]
	g.owed = false
	if s := a.core.pool.Group(group); s.Quiet && s.Phase <= g.agreed {
		a.core.pool.Agree(group, s.Phase) // the others have gone on before, and wait for no message
		return
	}
	s := a.state(group)
	if !s.Quiet {
		return // it will be called again
	}
	if g.owed = a.core.awaitsClients(); g.owed {
		return
	}
	to := a.core.coordinator()
	if p := a.core.peers[to]; p != nil && p.session.Stats().Pending > statusMax {
		g.owed = true // otherwise a group that is quiet again and again would fill the session with a node that is cut off
		return
	}
	a.tell(to, groupMessage{kind: controlStatus, group: group, phase: s.Phase, quiet: true, turns: s.Turns})
}

// state is the state of a group on this node. The group is not quiet while the session may
// still deliver messages to it that count as dropped: they would arrive after its end.
func (a *agreement) state(group int) piper.GroupState {
	s := a.core.pool.Group(group)
	s.Quiet = s.Quiet && a.groups[group].doubts == 0
	return s
}

// doubt counts chunks for a processor that were dropped and may still be handled.
func (a *agreement) doubt(processor, chunks int) {
	group := a.core.pool.GroupOf(processor)
	g := &a.groups[group]
	if g.doubts += chunks; g.doubts == 0 {
		a.quiet(group)
	}
}

// tellOwed reports the quiet groups that the coordinator has not been told.
func (a *agreement) tellOwed() {
	for i := range a.groups {
		if a.groups[i].owed {
			a.quiet(i)
		}
	}
}

// tellAll reports all groups again, because the coordinator has changed or was restarted.
func (a *agreement) tellAll() {
	for i := range a.groups {
		a.quiet(i)
	}
}

// tell sends a message to a node, which may be this one.
func (a *agreement) tell(node string, m groupMessage) {
	if node == a.core.node {
		_ = a.receive(node, m) // its own messages are valid
		return
	}
	if p := a.core.peers[node]; p != nil {
		p.send(laneControl, m.append(nil))
	}
}

// receive handles a message of a node.
func (a *agreement) receive(from string, m groupMessage) error {
	if m.group >= len(a.groups) {
		return fmt.Errorf("%w: group %d", errMalformed, m.group)
	}
	g := &a.groups[m.group]
	switch m.kind {
	case controlStatus:
		a.recordStatus(g, from, m)
	case controlQuery:
		s := a.state(m.group)
		a.tell(from, groupMessage{kind: controlAnswer, group: m.group, phase: s.Phase, round: m.round, quiet: s.Quiet, turns: s.Turns})
	case controlAnswer:
		a.recordAnswer(g, from, m)
	}
	return nil
}

func (a *agreement) recordStatus(g *groupAgreement, from string, m groupMessage) {
	if m.phase <= g.agreed {
		return // the node reads it in the table
	}
	if g.status == nil {
		g.status = map[string]groupMessage{}
	}
	g.status[from] = m
	a.ask(g, m.group, m.phase)
}

// ask begins the second round if all nodes have said that they are quiet.
func (a *agreement) ask(g *groupAgreement, group int, phase uint8) {
	members := a.core.participants()
	if g.asked != nil || phase <= max(g.agreed, g.decided.phase) || !a.allQuiet(g, members, phase) || !a.core.meets(members) {
		return
	}
	g.round++
	g.phase, g.changed, g.asked = phase, false, map[string]uint32{}
	for _, node := range members {
		g.asked[node] = g.status[node].turns
	}
	for _, node := range members {
		a.tell(node, groupMessage{kind: controlQuery, group: group, phase: phase, round: g.round})
	}
}

// recordAnswer handles an answer of the second round. The last one decides.
func (a *agreement) recordAnswer(g *groupAgreement, from string, m groupMessage) {
	turns, ok := g.asked[from]
	if !ok || m.round != g.round {
		return
	}
	delete(g.asked, from)
	switch {
	case !m.quiet || m.phase != g.phase:
		if g.changed = true; g.status[from].phase == g.phase { // otherwise it has reported a later phase
			delete(g.status, from) // the node will report when it is quiet
		}
	case m.turns != turns:
		g.changed = true
		g.status[from] = m
	}
	if len(g.asked) > 0 {
		return
	}
	g.asked = nil
	if g.changed || !a.allQuiet(g, a.core.participants(), g.phase) { // a node may have joined during the round
		a.ask(g, m.group, g.phase)
		return
	}
	g.decided = decision{phase: g.phase, processes: a.core.processes()}
}

// allQuiet reports whether all nodes have said that the group is quiet.
func (a *agreement) allQuiet(g *groupAgreement, members []string, phase uint8) bool {
	return !slices.ContainsFunc(members, func(node string) bool {
		s, ok := g.status[node]
		return !ok || s.phase != phase
	})
}

// restarted forgets what a former process of a node has said.
func (a *agreement) restarted(node string) {
	for i := range a.groups {
		g := &a.groups[i]
		g.asked, g.decided = nil, decision{}
		delete(g.status, node)
	}
	a.record.look = true
}

// membersChanged looks at all groups again: a node that has left need not be quiet, and
// does not answer.
func (a *agreement) membersChanged() {
	a.read()
	a.record.look = true
	members := a.core.participants()
	for i := range a.groups {
		g := &a.groups[i]
		for node := range g.asked {
			if !slices.Contains(members, node) {
				g.asked = nil
				break
			}
		}
		if g.status != nil {
			a.ask(g, i, a.state(i).Phase)
		}
	}
}
