package raft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
)

// ChangeKind is what happens to a member.
type ChangeKind uint8

const (
	AddLearner ChangeKind = iota // a new member gets the log, and has no vote yet
	AddVoter                     // a new member has a vote at once: better AddLearner, and Promote when it has the log
	Promote                      // a learner gets a vote
	Remove                       // a member leaves: its name may be used again, its disk may not
	Readdress                    // a member is reached at another address
	Rename                       // a member gets another name: start it again under that
)

// Change is one change of the members. Several that are made together come about
// together, by joint consensus.
type Change struct {
	Kind    ChangeKind
	Name    string
	Address string // of a new member, and the other one of Readdress
	To      string // of Rename: the other name
	ID      uint64 // of who is added or promoted: 0 where the leader is to ask the node for it
	Force   bool   // even where the group may not be able to go on afterwards
}

// adds reports whether the change makes a node a member.
func (c Change) adds() bool { return c.Kind == AddLearner || c.Kind == AddVoter }

// asks reports whether the node has not said yet who it is.
func (c Change) needsID() bool { return c.ID == 0 && (c.adds() || c.Kind == Promote && !c.Force) }

// promoteBehindMax is how many entries a learner may lack that gets a vote: a group that
// needs it waits so long. Under load it always lacks those on the way.
const promoteBehindMax = 1024

// plan is what changes come to.
type changePlan struct {
	singles []*pb.ConfChangeSingle // for the engine
	list    []Member               // the members that are changed
	after   members                // all, then
	added   map[uint64]bool        // who gets a vote that has none
}

// plan plans changes, or says what is wrong with them.
func (m members) plan(changes []Change) (*changePlan, error) {
	if len(changes) == 0 || len(changes) > membersMax {
		return nil, fmt.Errorf("%w: there must be 1 to %d changes at once, got %d", ErrMembers, membersMax, len(changes))
	}
	p := &changePlan{after: maps.Clone(m), added: map[uint64]bool{}}
	seen := map[string]bool{}
	for _, c := range changes {
		if seen[c.Name] {
			return nil, fmt.Errorf("%w: %q must have at most one change at once", ErrMembers, c.Name)
		}
		seen[c.Name] = true
		if err := p.add(c); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMembers, err)
		}
	}
	if err := p.checkAddresses(changes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMembers, err)
	}
	voters, present := 0, 0
	for _, o := range p.after {
		if !o.Leaving {
			present++
		}
		if !o.Leaving && !o.Learner {
			voters++
		}
	}
	switch {
	case voters == 0:
		return nil, fmt.Errorf("%w: no member would have a vote", ErrMembers)
	case present > membersMax:
		return nil, fmt.Errorf("%w: a group has at most %d members", ErrMembers, membersMax)
	}
	return p, nil
}

// change takes a change into the plan.
func (p *changePlan) add(c Change) error {
	if err := checkText(c.Name, c.Address); err != nil {
		return err
	}
	o, known := p.after.named(c.Name)
	switch {
	case c.adds() && known:
		return fmt.Errorf("%q is a member", c.Name)
	case !c.adds() && !known:
		return fmt.Errorf("%q is not a member", c.Name)
	}
	kind := pb.ConfChangeUpdateNode
	switch c.Kind {
	case AddLearner, AddVoter:
		if _, used := p.after[c.ID]; used || c.ID == 0 || c.ID > idMask {
			return fmt.Errorf("%q must have the id of a new node, got %s", c.Name, groupText(c.ID))
		}
		o = Member{ID: c.ID, Name: c.Name, Address: c.Address, Learner: c.Kind == AddLearner}
		if kind = pb.ConfChangeAddNode; o.Learner {
			kind = pb.ConfChangeAddLearnerNode
		} else {
			p.added[o.ID] = true
		}
		p.freeName(c.Name)
	case Promote:
		if !o.Learner {
			return fmt.Errorf("%q has a vote", c.Name)
		}
		if c.ID != 0 && c.ID != o.ID {
			return fmt.Errorf("%q has the id %s, and not %s", c.Name, groupText(o.ID), groupText(c.ID))
		}
		o.Learner, p.added[o.ID] = false, true
		kind = pb.ConfChangeAddNode
	case Remove:
		o.Leaving = true
		kind = pb.ConfChangeRemoveNode
	case Readdress:
		if c.Address == "" {
			return fmt.Errorf("%q needs an address", c.Name)
		}
		o.Address, o.Moved = c.Address, true
	case Rename:
		if err := checkText(c.To, ""); err != nil {
			return err
		}
		if _, used := p.after.named(c.To); used {
			return fmt.Errorf("%q is a member", c.To)
		}
		p.freeName(c.To)
		o.Name, o.Was = c.To, o.Name
	default:
		return fmt.Errorf("%d is not a kind of change", c.Kind)
	}
	p.singles = append(p.singles, &pb.ConfChangeSingle{Type: kind.Enum(), NodeId: new(o.ID)})
	p.set(o)
	return nil
}

// addresses refuses to give a member the address of another: what is sent to one would
// reach the other, which ignores it.
func (p *changePlan) checkAddresses(changes []Change) error {
	for _, c := range changes {
		if c.Address == "" {
			continue
		}
		for _, o := range p.after.list() {
			if o.Name != c.Name && o.Address == c.Address && !o.Leaving {
				return fmt.Errorf("%s is the address of %q, so %q needs another", c.Address, o.Name, c.Name)
			}
		}
	}
	return nil
}

func checkText(name, address string) error {
	if name == "" || len(name) > nameBytesMax || len(address) > nameBytesMax {
		return fmt.Errorf("a name must have 1 to %d bytes and an address at most %d, got %q and %q", nameBytesMax, nameBytesMax, name, address)
	}
	return nil
}

func (p *changePlan) set(o Member) {
	p.after[o.ID] = o
	p.list = append(p.list, o)
}

// free takes a name from a member that had it before, and is still known by it.
func (p *changePlan) freeName(name string) {
	for _, o := range p.after.list() {
		if o.Was == name {
			o.Was = ""
			p.set(o)
		}
	}
}

// bearable says why the group may not be able to go on after changes: a majority must be
// heard of, and a member that gets a vote must have the log.
func (c *Core) checkQuorumAfter(p *changePlan) error {
	progress := c.node.Status().Progress
	voters := 0
	var silent, behind []string
	for _, o := range p.after.list() {
		if o.Learner || o.Leaving {
			continue
		}
		voters++
		_, known := c.members[o.ID]
		switch {
		case !known: // a new one, which has just said who it is
		case !c.heardWithin(o.ID, 1):
			silent = append(silent, o.Name)
		case p.added[o.ID] && progress[o.ID].Match+promoteBehindMax < c.node.BasicStatus().GetCommit():
			behind = append(behind, fmt.Sprintf("%s lacks %d entries", o.Name, c.node.BasicStatus().GetCommit()-progress[o.ID].Match))
		case p.added[o.ID] && progress[o.ID].Match < c.memory.first: // a state of whatever size, which it may refuse
			behind = append(behind, o.Name+" needs a snapshot, which it has not taken yet")
		}
	}
	added := slices.ContainsFunc(p.after.list(), func(o Member) bool { return p.added[o.ID] && slices.Contains(silent, o.Name) })
	const force = "Force (--force in topoctl) makes the change without this check; then the group may not be able to go on"
	switch {
	case voters-len(silent) <= voters/2 || added:
		return fmt.Errorf("%w: afterwards %d of %d voters would be needed, and no message comes from %s. Start the nodes that are down, or remove them first. %s",
			ErrMembers, voters/2+1, voters, strings.Join(silent, ", "), force)
	case len(behind) > 0:
		return fmt.Errorf("%w: %s, and the group would wait for it. Try again later. %s", ErrMembers, strings.Join(behind, ", "), force)
	}
	return nil
}

// hears reports whether a member was heard of within so many election timeouts.
func (c *Core) heardWithin(id uint64, timeouts int) bool {
	at, ok := c.lastHeard[id]
	return id == c.id || ok && c.tick-at <= int64(timeouts*c.config.ElectionTicks)
}
