package cluster

import (
	"slices"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
)

// record is what a node has to do with the phases in the address table.
//
// The coordinator proposes the phases of all groups that it has found quiet since its last
// proposal, in one transaction. Each node lets its groups go on when it reads a phase
// in its replica, also if its process has started after the agreement. The phases hold for the processes that
// have agreed. A process that has started later takes them over when it meets one of
// these processes. It does not meet any if all nodes were started again: then the topology runs
// again, from its beginning.
type record struct {
	seen      *table.End // that was read last
	look      bool       // processes have changed, so this one may have met one for which the phases hold
	proposing bool       // the driver has a proposal, and has not returned its result
}

// decision is a phase in which the coordinator has found a group quiet on all nodes.
type decision struct {
	phase     uint8  // 0: there is none
	processes uint64 // hash of the processes that were asked
}

// proposal is a transaction that the driver of the core runs. It repeats the transaction
// while the outcome is not known.
type proposal struct {
	guards []table.Guard
	agree  table.Agree
}

// holds reports whether the phases in the table hold for this process.
func (a *agreement) holds() bool {
	return a.core.places.End().Holds(a.core.node, table.Boot(a.core.boot))
}

// read lets groups go on whose phases in the table have changed.
func (a *agreement) read() {
	end := a.core.places.End()
	if end == a.record.seen {
		return
	}
	if a.record.seen = end; !a.holds() {
		return
	}
	for i := range a.groups {
		g := &a.groups[i]
		phase := end.Phase(i)
		if phase <= g.agreed {
			continue
		}
		g.agreed = phase
		for node, m := range g.status {
			if m.phase <= phase {
				delete(g.status, node)
			}
		}
		if g.phase <= phase {
			g.asked = nil
		}
		if g.decided.phase <= phase {
			g.decided = decision{}
		}
		for p := piper.GroupClosing; p <= phase; p++ { // the group is in one of them, or gets there later
			a.core.pool.Agree(i, p)
		}
	}
}

// propose gives what must be in the table to the driver.
func (a *agreement) propose() {
	if a.record.proposing || a.core.propose == nil {
		return
	}
	p, ok := a.takeOver()
	if !ok {
		p, ok = a.decisions()
	}
	if ok {
		a.record.proposing = true
		a.core.propose(p)
	}
}

// takeOver returns the proposal that the phases in the table hold for this process too, if it
// has met a process for which they hold.
func (a *agreement) takeOver() (p proposal, ok bool) {
	if !a.record.look {
		return p, false
	}
	a.record.look = false
	end, c := a.core.places.End(), a.core
	if me, _ := c.places.Boot(c.node); end == nil || a.holds() || me != c.boot {
		return p, false
	}
	for other := range c.nodes() {
		boot := table.Boot(other.session.Stats().Peer)
		if now, _ := c.places.Boot(other.name); other.found && other.reachable && end.Holds(other.name, boot) && table.Boot(now) == boot {
			p.guards = []table.Guard{table.BootIs{Name: c.node, Boot: table.Boot(c.boot)}, table.BootIs{Name: other.name, Boot: boot}}
			return p, true
		}
	}
	return p, false
}

// decisions returns the proposal of all decisions about the same processes. If processes have changed
// since a decision, the group is asked again.
func (a *agreement) decisions() (p proposal, ok bool) {
	processes := uint64(0)
	for i := range a.groups {
		d := &a.groups[i].decided
		if d.phase == 0 {
			continue
		}
		if !ok {
			ok, processes = true, d.processes
			p.guards = []table.Guard{table.ProcessesAre{Hash: processes}}
		}
		if d.processes == processes {
			p.agree.Groups = append(p.agree.Groups, table.GroupPhase{Group: i, Phase: d.phase})
		}
	}
	return p, ok
}

// proposed handles the result of a proposal. If it was not applied, a process has changed, so the
// groups are asked again. If it was applied, read removes the decisions.
func (a *agreement) proposed(p *proposal, applied bool) {
	a.record.proposing = false
	a.read()
	if applied {
		return
	}
	for _, group := range p.agree.Groups {
		g := &a.groups[group.Group]
		phase := g.decided.phase
		if phase == 0 {
			continue
		}
		g.decided = decision{}
		a.ask(g, group.Group, phase)
	}
}

// processes is the hash of this process and of the processes that have answered on the other nodes.
func (c *nodeCore) processes() uint64 {
	var h table.HashProcesses
	for _, name := range c.participants() { // by name
		h.Add(name, table.Boot(c.bootOf(name)))
	}
	return h.Sum()
}

// bootOf is the boot id of the process that has answered on a node; 0 if none has.
func (c *nodeCore) bootOf(name string) uint64 {
	if name == c.node {
		return c.boot
	}
	if p := c.peers[name]; p != nil {
		return p.session.Stats().Peer
	}
	return 0
}

// meets reports whether the processes that have answered on nodes are those in the address table.
// Otherwise the agreement waits until it meets the others.
func (c *nodeCore) meets(nodes []string) bool {
	return !slices.ContainsFunc(nodes, func(name string) bool {
		boot, _ := c.places.Boot(name)
		return boot == 0 || boot != c.bootOf(name)
	})
}
