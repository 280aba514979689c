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
	lostLog    string            // CoreConfig.LostLog

	number         uint64 // number in the questions of this start; an answer with another number belongs to an earlier start
	election       int64  // ticks of an election timeout
	tick           int64
	nextAsk        int64                  // tick of the next questions
	peers          map[string]*peerAnswer // the configured peers
	others         map[string]*peerAnswer // other nodes that send messages as if this node were a member of their group
	idMismatchTick int64                  // tick since which peers report another id for this node's name; 0: no peer reports this
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
	salt    []byte   // of actionJoin, with first: random bytes of the founder; for actionFound they are chosen later
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
	b := &bootstrap{
		name: c.Name, id: c.ID, joins: c.Join, configured: c.Peers, lostLog: c.LostLog, number: c.Nonce, election: int64(c.ElectionTicks),
		peers: map[string]*peerAnswer{}, others: map[string]*peerAnswer{},
	}
	for name := range c.Peers {
		if name != c.Name {
			b.peers[name] = &peerAnswer{heardAt: -1 << 32, askedAt: -1 << 32}
		}
	}
	return b
}

// noteSender records that a node sends messages as if this node were a member of its
// group. It reports whether this node should ask that node for its group.
func (b *bootstrap) noteSender(name string) (ask bool) {
	a := b.peer(name)
	if a == nil {
		if len(b.others) >= membersMax {
			clear(b.others)
		}
		a = &peerAnswer{heardAt: -1 << 32, askedAt: -1 << 32}
		b.others[name] = a
	}
	ask = a.askedAt < b.tick
	a.askedAt = max(a.askedAt, b.tick)
	return ask
}

// peersToAsk returns the peers that must be asked now.
func (b *bootstrap) peersToAsk() []string {
	if b.tick < b.nextAsk {
		return nil
	}
	b.nextAsk = b.tick + max(1, b.answerMax()/4)
	maps.DeleteFunc(b.others, func(_ string, a *peerAnswer) bool { return b.tick-a.askedAt > 10*b.election }) // the node has stopped sending
	for _, a := range b.peers {
		a.askedAt = b.tick
	}
	return slices.Sorted(maps.Keys(b.peers))
}

// takeAnswer records the introduction of a peer. It reports whether the reply to the peer
// should also contain a question.
func (b *bootstrap) takeAnswer(name string, id, groupID uint64, i introduction) (ask bool) {
	a := b.peer(name)
	if a == nil {
		return false
	}
	if i.question != 0 {
		a.number = i.question
	}
	if i.answerTo == b.number {
		a.introduction, a.id, a.groupID, a.heardAt = i, id, groupID, b.tick
		return false
	}
	if ask = a.askedAt < b.tick; ask { // the peer may have just started
		a.askedAt = b.tick
	}
	return ask
}

func (b *bootstrap) peer(name string) *peerAnswer {
	if a := b.peers[name]; a != nil {
		return a
	}
	return b.others[name]
}

// recent reports whether the last answer of a peer is recent enough.
func (b *bootstrap) recent(a *peerAnswer) bool { return b.tick-a.heardAt <= b.answerMax() }

// answerMax is how many ticks an answer counts. It grows with the number of peers, because all of them
// ask all others and each answer lists all of them: 64 nodes on a few processors
// would do nothing else.
func (b *bootstrap) answerMax() int64 { return b.election * int64(1+len(b.peers)/askedAtOnce) }

// askedAtOnce is how many peers a node asks in a quarter of an election timeout.
const askedAtOnce = 16

// decide returns the next step.
func (b *bootstrap) decide() decision {
	names := slices.Sorted(maps.Keys(b.peers))
	all := slices.Concat(names, slices.Sorted(maps.Keys(b.others)))
	for _, name := range all {
		if v, ok := b.joinDecision(b.peer(name)); ok {
			return v
		}
	}
	if err := b.checkOwnID(all); err != nil {
		return decision{action: actionFail, err: err}
	}
	if why := b.blocker(names, all); why != "" {
		return decision{why: why}
	}
	if founder := b.founder(names); founder != b.name {
		return decision{why: "waiting for " + b.nameAndAddress(founder) + " to found the group"}
	}
	v := decision{action: actionFound, first: []Member{{ID: b.id, Name: b.name, Address: b.configured[b.name]}}}
	for _, name := range names {
		v.first = append(v.first, Member{ID: b.peers[name].id, Name: name, Address: b.configured[name]})
	}
	slices.SortFunc(v.first, func(m, o Member) int { return strings.Compare(m.Name, o.Name) })
	return v
}

// joinDecision returns the decision to join, if the group of a peer has this node's id.
func (b *bootstrap) joinDecision(a *peerAnswer) (v decision, ok bool) {
	has := func(list []Member) bool {
		return slices.ContainsFunc(list, func(m Member) bool { return m.ID == b.id && !m.Leaving })
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
// id. It waits until peers have reported this for some time, because a single peer may
// not have received a change yet. In each group only the answer of the peer with the
// longest log counts. The other peers may not know yet that the node with the other id
// was removed.
func (b *bootstrap) checkOwnID(names []string) error {
	newest := map[uint64]string{} // by group: the peer with the longest log
	for _, name := range names {
		a := b.peer(name)
		if a.groupID == 0 || !b.recent(a) {
			continue
		}
		if other, known := newest[a.groupID]; !known || b.peer(other).index < a.index {
			newest[a.groupID] = name
		}
	}
	for _, name := range names {
		a := b.peer(name)
		if newest[a.groupID] != name || !a.knowsLeader {
			continue
		}
		i := slices.IndexFunc(a.members, func(m Member) bool { return m.Name == b.name && !m.Leaving })
		if i < 0 {
			continue
		}
		if b.idMismatchTick == 0 {
			b.idMismatchTick = b.tick + 1
		}
		if b.tick+1-b.idMismatchTick < identityTimeouts*b.election {
			return nil
		}
		return fmt.Errorf("%w: the group of %s has %s as the node with id %s, but this disk has the id %s: the disk was emptied or exchanged. %s",
			ErrLogLost, name, b.name, groupText(a.members[i].ID), groupText(b.id), wrongDiskAdvice(b.lostLog, b.name, b.configured[b.name]))
	}
	b.idMismatchTick = 0
	return nil
}

// soleMemberTimeouts is how many election timeouts a node that has no peers listens
// before it founds the group. The node may have been one of several members, and may have
// lost its disk.
const soleMemberTimeouts = 2

// identityTimeouts is how many election timeouts peers must say that this node has
// another id before it stops. A change of the members may need this time to reach all
// peers.
const identityTimeouts = 3

// lostLogAdvice says what to do about a member whose log is lost: own, which is
// CoreConfig.LostLog, or the commands of topoctl.
func lostLogAdvice(own, name, address string) string {
	if own != "" {
		return own
	}
	if address == "" {
		address = "ADDRESS"
	}
	return fmt.Sprintf("Remove the member (topoctl raft remove %s), empty the folder of this node, start it, and add it (topoctl raft add %s %s)", name, name, address)
}

// wrongDiskAdvice says what to do about a member whose folder does not hold its log. The
// folder may be the wrong one.
func wrongDiskAdvice(own, name, address string) string {
	if own != "" {
		return own
	}
	return "If the log is in another folder, start the node with that folder (log.path, TOPOGEN_RAFT_DIR). If the log is lost: " + lostLogAdvice("", name, address)
}

// blocker says why the group cannot be founded yet, or returns "".
func (b *bootstrap) blocker(names, all []string) string {
	var missing []string
	for _, name := range all {
		switch a := b.peer(name); {
		case a.heardAt < 0 || !b.recent(a) && a.groupID == 0:
			missing = append(missing, b.nameAndAddress(name))
		case a.groupID != 0:
			return b.notMemberText(name, a)
		}
	}
	if len(missing) > 0 {
		what := "before the group can be founded"
		if b.joins {
			what = "to hear about the group that this node will join"
		}
		return "waiting for " + strings.Join(missing, ", ") + " " + what
	}
	for _, name := range names {
		if own, other := b.names(b.configured), b.names(addresses(b.peers[name].configured)); own != other && !b.joins && !b.peers[name].joins {
			return fmt.Sprintf("the group cannot be founded: this node is configured with the first members %s, but %s with %s. Give all nodes the same peers", own, name, other)
		}
	}
	if len(names) == 0 && b.tick < soleMemberTimeouts*b.election {
		return "waiting for other nodes that know this one"
	}
	if b.founder(names) == "" {
		return "the group cannot be founded: each of " + b.names(b.configured) + " is set to join an existing group (TOPOGEN_RAFT_JOIN). Start one of them without that setting"
	}
	return ""
}

// notMemberText says what to do if a peer belongs to a group without this node.
func (b *bootstrap) notMemberText(name string, a *peerAnswer) string {
	if i := slices.IndexFunc(a.members, func(m Member) bool { return m.Name == b.name && !m.Leaving }); i >= 0 {
		return fmt.Sprintf("%s belongs to a group in which %s is the node with id %s, but this disk has another id: it was emptied or exchanged. %s",
			name, b.name, groupText(a.members[i].ID), wrongDiskAdvice(b.lostLog, b.name, b.configured[b.name]))
	}
	if b.lostLog != "" { // another package adds the node
		return fmt.Sprintf("%s belongs to an existing group, with identity %s, and this node waits until it is added", name, groupText(a.groupID))
	}
	return fmt.Sprintf("%s belongs to an existing group, with identity %s, and this node is not a member: add it with \"topoctl raft add %s %s --addr %s\", or, if it must found its own group, configure other peers",
		name, groupText(a.groupID), b.name, b.configured[b.name], b.configured[name])
}

// founder returns the name of the node that founds the group, or "" if no node may.
func (b *bootstrap) founder(names []string) string {
	least := ""
	if !b.joins {
		least = b.name
	}
	for _, name := range names {
		if !b.peers[name].joins && (least == "" || name < least) {
			least = name
		}
	}
	return least
}

// nameAndAddress returns a peer with its address, for messages.
func (b *bootstrap) nameAndAddress(name string) string {
	if b.configured[name] == "" {
		return name
	}
	return name + " (" + b.configured[name] + ")"
}

// names lists the names of members, for messages.
func (b *bootstrap) names(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

func addresses(list []Member) map[string]string {
	m := make(map[string]string, len(list))
	for _, o := range list {
		m[o.Name] = o.Address
	}
	return m
}
