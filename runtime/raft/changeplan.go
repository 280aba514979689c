package raft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
)

// ChangeKind is the kind of a change.
type ChangeKind uint8

const (
	AddLearner ChangeKind = iota // adds a member that gets the log and has no vote yet
	AddVoter                     // adds a member that has a vote at once; AddLearner, and Promote when the member has the log, are safer
	Promote                      // gives a learner a vote
	Remove                       // removes a member; its name may be used again, but not its disk
	Readdress                    // changes the address of a member
	Rename                       // changes the name of a member; it must then be started under the new name
)

// Change is one change of the members. Several changes in one call take effect together,
// by joint consensus.
type Change struct {
	Kind    ChangeKind
	Name    string
	Address string // of a new member, or the new address of Readdress
	To      string // of Rename: the new name
	ID      uint64 // id of an added or promoted node; 0: the leader asks the node for its id
	Force   bool   // make the change even if the group may not be able to continue afterwards
}

// adds reports whether the change adds a member.
func (c Change) adds() bool { return c.Kind == AddLearner || c.Kind == AddVoter }

// needsID reports whether the leader must ask the node for its id.
func (c Change) needsID() bool { return c.ID == 0 && (c.adds() || c.Kind == Promote && !c.Force) }

// promoteBehindMax is how many entries a learner may lack when it gets a vote. If the
// group needs this vote, the group waits until the learner has the entries. Under load a
// learner always lacks the entries that are in flight.
const promoteBehindMax = 1024

// changePlan is the result of a list of changes.
type changePlan struct {
	singles []*pb.ConfChangeSingle // changes for the engine
	list    []Member               // the changed members
	after   members                // all members after the changes
	added   map[uint64]bool        // members that get a vote
}

// plan returns the result of changes, or an error if a change is invalid.
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

// add adds a change to the plan.
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

// checkAddresses refuses to give a member the address of another one. Messages to one
// member would reach the other, which ignores them.
func (p *changePlan) checkAddresses(changes []Change) error {
	for _, c := range changes {
		if c.Address == "" {
			continue
		}
		for _, o := range p.after.list() {
			if o.Name != c.Name && o.Address == c.Address && !o.Leaving {
				return fmt.Errorf("%s is the address of %q, so %q needs another address", c.Address, o.Name, c.Name)
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

// freeName removes a name from members that had it before a renaming.
func (p *changePlan) freeName(name string) {
	for _, o := range p.after.list() {
		if o.Was == name {
			o.Was = ""
			p.set(o)
		}
	}
}

// checkQuorumAfter returns an error if the group may not be able to continue after the
// changes: a majority must have answered lately, and a member that gets a vote must
// have the log.
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
		case !known: // a new node, which has just sent its id
		case !c.answers(o.ID):
			silent = append(silent, o.Name)
		case p.added[o.ID] && progress[o.ID].Match+promoteBehindMax < c.node.BasicStatus().GetCommit():
			behind = append(behind, fmt.Sprintf("%s lacks %d entries", o.Name, c.node.BasicStatus().GetCommit()-progress[o.ID].Match))
		case p.added[o.ID] && progress[o.ID].Match < c.memory.first: // the state has an unknown size, and the member may refuse it
			behind = append(behind, o.Name+" needs a snapshot, which it has not taken yet")
		}
	}
	added := slices.ContainsFunc(p.after.list(), func(o Member) bool { return p.added[o.ID] && slices.Contains(silent, o.Name) })
	const force = "Force (--force in topoctl) makes the change without this check; then the group may not be able to continue"
	switch {
	case voters-len(silent) <= voters/2 || added:
		return fmt.Errorf("%w: after the change %d of %d voters would be needed, but no answer comes from %s. Start the nodes that are down, correct wrong addresses, or remove these nodes first. %s",
			ErrMembers, voters/2+1, voters, strings.Join(silent, ", "), force)
	case len(behind) > 0:
		return fmt.Errorf("%w: %s, and the group would wait for it. Try again later. %s", ErrMembers, strings.Join(behind, ", "), force)
	}
	return nil
}
