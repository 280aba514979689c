package raft

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bootstrap is the behavior of a node until it is a member of a group
// (docs/decisions/0025-groups-have-an-identity.md). The node asks its peers for their ids
// and groups, until it belongs to a group or may found one with them. bootstrap only
// depends on ticks and on the answers of the peers. It sends and saves nothing itself.
type bootstrap struct {
	name       string
	id         uint64
	joins      bool              // the node never founds a group
	configured map[string]string // the configured peers, including this node: names and addresses

	number         uint64 // number of this start's questions; an answer with another number is for an earlier start
	election       int64  // ticks of an election timeout
	tick           int64
	nextAsk        int64                  // tick of the next questions
	peers          map[string]*peerAnswer // the configured peers
	others         map[string]*peerAnswer // other nodes that send messages as if this one were a member of their group
	idMismatchTick int64                  // tick since which peers say that this node's name has another id; 0: they do not say so
}

// peerAnswer is the last answer of a peer.
type peerAnswer struct {
	introduction
	id      uint64
	groupID uint64
	number  uint64 // of the peer's own questions; 0: it has not asked
	heardAt int64  // tick
	askedAt int64
}

// decision is the next step of a node.
type decision struct {
	action  action
	groupID uint64
	index   uint64   // of actionJoin: index at which the group's members include this node
	first   []Member // of actionFound, and of actionJoin if known: the first members of the group
	salt    []byte   // of actionJoin, with first: random bytes of the founder; nil for actionFound, because they are not drawn yet
	members []Member // of actionJoin: all members
	err     error    // of actionFail
	why     string   // of actionWait: the reason, for logs
}

type action byte

const (
	actionWait action = iota
	actionFound
	actionJoin
	actionFail
)

func newBootstrap(c *CoreConfig) *bootstrap {
	f := &bootstrap{
		name: c.Name, id: c.ID, joins: c.Join, configured: c.Peers, number: c.Nonce, election: int64(c.ElectionTicks),
		peers: map[string]*peerAnswer{}, others: map[string]*peerAnswer{},
	}
	for name := range c.Peers {
		if name != c.Name {
			f.peers[name] = &peerAnswer{heardAt: -1 << 32, askedAt: -1 << 32}
		}
	}
	return f
}

// noteSender records that a node sends messages as if this one were a member, and reports
// whether to ask that node.
func (f *bootstrap) noteSender(name string) (ask bool) {
	a := f.peer(name)
	if a == nil {
		if len(f.others) >= membersMax {
			clear(f.others)
		}
		a = &peerAnswer{heardAt: -1 << 32, askedAt: -1 << 32}
		f.others[name] = a
	}
	ask = a.askedAt < f.tick
	a.askedAt = max(a.askedAt, f.tick)
	return ask
}

// peersToAsk returns the peers that must be asked now.
func (f *bootstrap) peersToAsk() []string {
	if f.tick < f.nextAsk {
		return nil
	}
	f.nextAsk = f.tick + max(1, f.election/4)
	maps.DeleteFunc(f.others, func(_ string, a *peerAnswer) bool { return f.tick-a.askedAt > 10*f.election }) // the node has stopped sending
	for _, a := range f.peers {
		a.askedAt = f.tick
	}
	return slices.Sorted(maps.Keys(f.peers))
}

// takeAnswer records the introduction of a peer. It reports whether the reply to the peer
// should also contain a question.
func (f *bootstrap) takeAnswer(name string, id, groupID uint64, i introduction) (ask bool) {
	a := f.peer(name)
	if a == nil {
		return false
	}
	if i.question != 0 {
		a.number = i.question
	}
	if i.answerTo == f.number {
		a.introduction, a.id, a.groupID, a.heardAt = i, id, groupID, f.tick
		return false
	}
	if ask = a.askedAt < f.tick; ask { // the peer may have just started
		a.askedAt = f.tick
	}
	return ask
}

func (f *bootstrap) peer(name string) *peerAnswer {
	if a := f.peers[name]; a != nil {
		return a
	}
	return f.others[name]
}

// recent reports whether the last answer of a peer is recent enough.
func (f *bootstrap) recent(a *peerAnswer) bool { return f.tick-a.heardAt <= f.election }

// decide returns the next step.
func (f *bootstrap) decide() decision {
	names := slices.Sorted(maps.Keys(f.peers))
	all := slices.Concat(names, slices.Sorted(maps.Keys(f.others)))
	for _, name := range all {
		if v, ok := f.joinDecision(f.peer(name)); ok {
			return v
		}
	}
	if err := f.checkOwnID(all); err != nil {
		return decision{action: actionFail, err: err}
	}
	if why := f.blocker(names, all); why != "" {
		return decision{why: why}
	}
	if founder := f.founder(names); founder != f.name {
		return decision{why: "waiting for " + f.nameAndAddress(founder) + " to found the group"}
	}
	v := decision{action: actionFound, first: []Member{{ID: f.id, Name: f.name, Address: f.configured[f.name]}}}
	for _, name := range names {
		v.first = append(v.first, Member{ID: f.peers[name].id, Name: name, Address: f.configured[name]})
	}
	slices.SortFunc(v.first, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return v
}

// joinDecision returns the decision to join, if the group of a peer has this node's id.
func (f *bootstrap) joinDecision(a *peerAnswer) (v decision, ok bool) {
	has := func(list []Member) bool {
		return slices.ContainsFunc(list, func(m Member) bool { return m.ID == f.id && !m.Leaving })
	}
	if a.groupID == 0 || !has(a.members) {
		return v, false
	}
	v = decision{action: actionJoin, groupID: a.groupID, index: a.index, members: a.members}
	if has(a.firstMembers) && checkFirst(a.firstMembers) == nil && hashGroup(a.firstMembers, a.salt) == a.groupID {
		v.first, v.salt = a.firstMembers, a.salt
	}
	return v, true
}

// checkOwnID returns an error if the group of a peer knows this node's name under another
// id. It waits until peers have said so for some time, because a single peer may not have
// received a change yet. Of the peers in one group it believes the one with the longest
// log, because the others may not know yet that the node with the other id was removed.
func (f *bootstrap) checkOwnID(names []string) error {
	newest := map[uint64]string{} // by group: the peer with the longest log
	for _, name := range names {
		a := f.peer(name)
		if a.groupID == 0 || !f.recent(a) {
			continue
		}
		if other, known := newest[a.groupID]; !known || f.peer(other).index < a.index {
			newest[a.groupID] = name
		}
	}
	for _, name := range names {
		a := f.peer(name)
		if newest[a.groupID] != name || !a.knowsLeader {
			continue
		}
		i := slices.IndexFunc(a.members, func(m Member) bool { return m.Name == f.name && !m.Leaving })
		if i < 0 {
			continue
		}
		if f.idMismatchTick == 0 {
			f.idMismatchTick = f.tick + 1
		}
		if f.tick+1-f.idMismatchTick < identityTimeouts*f.election {
			return nil
		}
		return fmt.Errorf("%w: the group of %s has %s as the node with id %s, but this disk has the id %s: the disk was emptied or exchanged. %s",
			ErrLogLost, name, f.name, groupText(a.members[i].ID), groupText(f.id), wrongDiskAdvice(f.name, f.configured[f.name]))
	}
	f.idMismatchTick = 0
	return nil
}

// soleMemberTimeouts is how many election timeouts a node that has no peers listens
// before it founds the group. The node may have been one of several members, and may have
// lost its disk.
const soleMemberTimeouts = 2

// identityTimeouts is how many election timeouts peers must say that this node has
// another id before it stops. A change of the members that is in progress needs that long
// to reach all peers.
const identityTimeouts = 3

// lostLogAdvice says what to do about a member whose log is lost.
func lostLogAdvice(name, address string) string {
	if address == "" {
		address = "ADDRESS"
	}
	return fmt.Sprintf("Remove the member (topoctl raft remove %s), empty the folder of this node, start it, and add it (topoctl raft add %s %s)", name, name, address)
}

// wrongDiskAdvice says what to do about a member whose folder does not hold its log. The
// folder may be the wrong one.
func wrongDiskAdvice(name, address string) string {
	return "If the log is in another folder, start the node with that one (log.path, TOPOGEN_RAFT_DIR). If it is gone: " + lostLogAdvice(name, address)
}

// blocker says why the group cannot be founded yet, or returns "".
func (f *bootstrap) blocker(names, all []string) string {
	var missing []string
	for _, name := range all {
		switch a := f.peer(name); {
		case a.heardAt < 0 || !f.recent(a) && a.groupID == 0:
			missing = append(missing, f.nameAndAddress(name))
		case a.groupID != 0:
			return f.notMemberText(name, a)
		}
	}
	if len(missing) > 0 {
		what := "before the group can be founded"
		if f.joins {
			what = "to hear about the group that this node will join"
		}
		return "waiting for " + strings.Join(missing, ", ") + " " + what
	}
	for _, name := range names {
		if own, other := f.names(f.configured), f.names(addresses(f.peers[name].configured)); own != other && !f.joins && !f.peers[name].joins {
			return fmt.Sprintf("the group cannot be founded: this node is configured with the first members %s, but %s with %s. Give all nodes the same peers", own, name, other)
		}
	}
	if len(names) == 0 && f.tick < soleMemberTimeouts*f.election {
		return "waiting for other nodes that know this one"
	}
	if f.founder(names) == "" {
		return "the group cannot be founded: each of " + f.names(f.configured) + " is set to join an existing group (TOPOGEN_RAFT_JOIN). Start one of them without that setting"
	}
	return ""
}

// notMemberText says what to do if a peer belongs to a group without this node.
func (f *bootstrap) notMemberText(name string, a *peerAnswer) string {
	if i := slices.IndexFunc(a.members, func(m Member) bool { return m.Name == f.name && !m.Leaving }); i >= 0 {
		return fmt.Sprintf("%s belongs to a group in which %s is the node with id %s, but this disk has another id: it was emptied or exchanged. %s",
			name, f.name, groupText(a.members[i].ID), wrongDiskAdvice(f.name, f.configured[f.name]))
	}
	return fmt.Sprintf("%s belongs to an existing group, with identity %s, and this node is not a member: add it with \"topoctl raft add %s %s --addr %s\", or if it is to found a group of its own, name other peers",
		name, groupText(a.groupID), f.name, f.configured[f.name], f.configured[name])
}

// founder returns the name of the node that founds the group, or "" if no node may.
func (f *bootstrap) founder(names []string) string {
	least := ""
	if !f.joins {
		least = f.name
	}
	for _, name := range names {
		if !f.peers[name].joins && (least == "" || name < least) {
			least = name
		}
	}
	return least
}

// nameAndAddress returns a peer with its address, for messages.
func (f *bootstrap) nameAndAddress(name string) string {
	if f.configured[name] == "" {
		return name
	}
	return name + " (" + f.configured[name] + ")"
}

// names lists the names of members, for messages.
func (f *bootstrap) names(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

func addresses(list []Member) map[string]string {
	m := make(map[string]string, len(list))
	for _, o := range list {
		m[o.Name] = o.Address
	}
	return m
}
