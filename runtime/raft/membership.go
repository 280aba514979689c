package raft

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// identify reads the record of the disk, or writes a new one, and opens the log if the
// node is a member of a group. A log without a record was written when ids were hashes of
// names, and groups had no identity except their names.
func (n *Node) identify() error {
	c := &n.config
	r, err := c.Disk.Record()
	if errors.Is(err, errNoRecord) {
		return fmt.Errorf("%w. If that file is lost: %s", err, cmp.Or(c.LostRecord, lostLogAdvice(c.Core.LostLog, c.Core.Name, c.Core.Peers[c.Core.Name])))
	}
	if err != nil {
		return err
	}
	hasLog, err := c.Disk.HasLog()
	if err != nil {
		return err
	}
	fresh := r.ID == 0
	if fresh {
		r = Record{Topology: c.Topology, Group: c.GroupName, Name: c.Core.Name, ID: newID()}
		if hasLog {
			r.ID, r.GroupID = MemberID(r.Name), maskID(transport.GroupID(c.Topology, c.GroupName))
		}
	}
	if r.Topology == c.Topology && r.Group != c.GroupName && r.GroupID == 0 {
		// The node has not promised anything: the number of instances was changed before
		// there was a group.
		if hasLog {
			if err := removeUnused(c.Disk, r); err != nil {
				return err
			}
			hasLog = false
		}
		r.Group, fresh = c.GroupName, true
	}
	if r.Topology != c.Topology || r.Group != c.GroupName {
		return &wal.IdentityError{Dir: "the disk", Got: r.identity(), Want: wal.Identity{Topology: c.Topology, Group: c.GroupName, Node: r.ID, Name: c.Core.Name}}
	}
	switch {
	case r.GroupID != 0 && !hasLog:
		return fmt.Errorf("%w: the node is a member of the group with identity %s, and its log is gone. %s",
			ErrLogLost, groupText(r.GroupID), lostLogAdvice(c.Core.LostLog, r.Name, c.Core.Peers[r.Name]))
	case r.GroupID != 0:
		if n.log, c.Core.Stored, err = c.Disk.Open(r.identity()); err != nil {
			return explainMissingRecord(err, fresh, &r, cmp.Or(c.LostRecord, lostLogAdvice(c.Core.LostLog, r.Name, c.Core.Peers[r.Name])))
		}
		if err := checkName(c.Core.Name, &r, &c.Core.Stored); err != nil {
			return err
		}
	case hasLog:
		if err := removeUnused(c.Disk, r); err != nil {
			return err
		}
	}
	if fresh || r.Name != c.Core.Name {
		r.Name = c.Core.Name
		if err := c.Disk.SetRecord(r); err != nil {
			return err
		}
	}
	n.record, c.Core.ID, c.Core.GroupID = r, r.ID, r.GroupID
	return nil
}

// explainMissingRecord adds the advice about a lost log to err if the log belongs to a node with this name,
// and the folder does not contain the record of that node.
func explainMissingRecord(err error, fresh bool, r *Record, advice string) error {
	var identity *wal.IdentityError
	if !fresh || !errors.As(err, &identity) || identity.Got.Node == r.ID || identity.Got.Name != r.Name {
		return err
	}
	return missingRecord(identity.Dir, advice)
}

// missingRecord returns the error for a log whose folder does not contain the record of the node.
func missingRecord(dir, advice string) error {
	return fmt.Errorf("raft: %w: the file %q, which identifies the node of this log, is missing from %s; put back the file that was there. If that file is lost: %s", wal.ErrIdentity, recordFile, dir, advice)
}

// removeUnused removes the log of a node that was not a member yet. The node was stopped
// while it created the log. Such a log only holds the first snapshot of a group.
func removeUnused(d Disk, r Record) error {
	log, stored, err := d.Open(r.identity())
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	if stored.Snapshot.GetMetadata().GetIndex() > bootstrapIndex || len(stored.Entries) > 0 || stored.State.GetTerm() > BootstrapState().GetTerm() {
		return errors.New("raft: the log holds entries, but the record in the same folder says that the node is not a member of a group: the record is older than the log")
	}
	return d.RemoveLog()
}

// checkName refuses a name that differs from the node's previous name, unless the group
// has renamed or removed the node since.
func checkName(name string, r *Record, s *wal.Stored) error {
	if name == r.Name {
		return nil
	}
	h, _, err := readSnapshot(s.Snapshot.GetData())
	list := h.members
	if s.Snapshot == nil {
		err = nil
	}
	for _, e := range s.Entries {
		list = append(list, changedBy(e)...)
	}
	now, known := r.Name, s.Snapshot == nil
	for _, m := range list {
		if m.ID != r.ID {
			continue
		}
		known = true
		if m.Name == name || m.Was == name {
			return nil
		}
		now = m.Name
	}
	if !known && err == nil { // the node was removed, and the log does not contain its name any more; a notice of another member will stop the node
		return nil
	}
	return errors.Join(err, fmt.Errorf("raft: this is the disk of node %q of the group, not of %q; set %s to the name of this node", now, name, VariableNode))
}

// checkPeers checks the configured peers.
func checkPeers(peers map[string]string) error {
	if len(peers) > membersMax {
		return fmt.Errorf("raft: a node must have at most %d peers, got %d", membersMax, len(peers))
	}
	for name, address := range peers {
		if name == "" || len(name) > nameBytesMax || len(address) > nameBytesMax {
			return fmt.Errorf("raft: the name of a peer must have 1 to %d bytes and its address at most %d, got %q and %q", nameBytesMax, nameBytesMax, name, address)
		}
	}
	return nil
}

// enterGroup makes the node a member of a group. It writes the disk first. first is the
// first snapshot of the group, if the node is a first member.
func (n *Node) enterGroup(groupID, since uint64, first *pb.Snapshot) error {
	r := n.record
	r.GroupID, r.Since = groupID, since
	log, stored, err := n.config.Disk.Open(r.identity())
	if err != nil {
		return err
	}
	n.log = log
	if first != nil {
		stored.Snapshot, stored.State = first, BootstrapState()
		if err := errors.Join(log.Save(stored.State, nil, true), log.SaveSnapshot(first)); err != nil {
			return err
		}
	}
	if err := n.config.Disk.SetRecord(r); err != nil { // from here on the node is a member
		return err
	}
	n.record = r
	n.groupID.Store(groupID)
	if err := n.core.Enter(groupID, stored); err != nil {
		return err
	}
	if first != nil {
		n.applier.put(&Effects{Snapshot: first}, preparedState{})
	}
	n.logger.Info("raft: this node is a member of the group", slog.String("node", r.Name), slog.String("id", groupText(r.ID)), slog.String("group", groupText(groupID)))
	n.startMember()
	return nil
}

// startMember begins the work of a member.
func (n *Node) startMember() {
	c := n.core
	if len(c.members) > 0 {
		n.bootstrap = nil
		n.updatePeers(c.members.list())
	}
	if len(c.members) == 1 && !c.Stranger(c.id) {
		_ = c.Campaign() // there are no other members to wait for
		n.wakeUp()
	}
}

// bootstrapPhase returns "joining" or "founding" while the node has no log of a group, or
// "".
func (n *Node) bootstrapPhase() string {
	switch {
	case n.bootstrap == nil:
		return ""
	case n.core.groupID != 0 || n.bootstrap.joins:
		return "joining"
	}
	return "founding"
}

// bootstrapStep makes the next decision about the group of this node, and carries it out.
func (n *Node) bootstrapStep() error {
	b := n.bootstrap
	if b == nil || n.core.groupID != 0 || n.core.err != nil {
		return nil
	}
	switch v := b.decide(); v.action {
	case actionFound:
		if err := n.bootstrapGroup(v.first, newSalt(), bootstrapIndex); err != nil {
			return err
		}
		for _, m := range v.first { // inform the nodes that wait for the group at once
			if a := b.peers[m.Name]; a != nil && a.number != 0 {
				n.sendIntroduction(m.Name, a.number, 0)
			}
		}
	case actionJoin:
		if len(v.first) > 0 {
			return n.bootstrapGroup(v.first, v.salt, max(v.index, bootstrapIndex))
		}
		if err := n.enterGroup(v.groupID, v.index, nil); err != nil {
			return err
		}
		n.updatePeers(v.members)
	case actionFail:
		return v.err
	}
	return nil
}

// bootstrapGroup makes the node a first member of a group.
func (n *Node) bootstrapGroup(first []Member, salt []byte, since uint64) error {
	s, groupID, err := Bootstrap(first, salt, n.initialState)
	if err != nil {
		return err
	}
	n.initialState = nil
	return n.enterGroup(groupID, since, s)
}

const (
	bootstrapLogFirst = 3 * time.Second // time before the reason why there is no group is logged: nodes that are started together need less time to find each other
	bootstrapLogNext  = time.Minute     // time between two such messages
)

// bootstrapTick asks the peers, and sometimes logs why there is no group yet.
func (n *Node) bootstrapTick() error {
	b := n.bootstrap
	if b == nil {
		return nil
	}
	if len(n.core.members) > 0 { // the snapshot of the leader has been received
		n.startMember()
		return nil
	}
	b.tick++
	for _, name := range b.peersToAsk() {
		n.sendIntroduction(name, 0, b.number)
	}
	if err := n.bootstrapStep(); err != nil || n.bootstrap == nil {
		return err
	}
	every := func(d time.Duration) int64 { return max(1, int64(d/n.config.Tick)) }
	if at := b.tick - every(bootstrapLogFirst); at < 0 || at%every(bootstrapLogNext) != 0 {
		return nil
	}
	why := b.decide().why
	if n.core.groupID != 0 {
		why = "waiting for the leader of the group"
	}
	n.logger.Warn("raft: "+why, slog.String("node", n.config.Core.Name))
	return nil
}

// sendIntroduction sends a node the introduction of this one, as an answer, a question or
// both.
func (n *Node) sendIntroduction(to string, answers, asks uint64) {
	c := n.core
	i := introduction{question: asks, answerTo: answers, joins: n.config.Core.Join}
	for name, address := range n.config.Core.Peers {
		i.configured = append(i.configured, Member{ID: MemberID(name), Name: name, Address: address})
	}
	if c.groupID != 0 {
		i.knowsLeader, i.index, i.members = c.leader != 0, c.applied, c.members.list()
		if c.SnapshotIndex() == bootstrapIndex {
			h, _, err := readSnapshot(c.memory.snapshot.GetData())
			if err == nil && len(h.salt) > 0 {
				i.firstMembers, i.salt = h.members, h.salt
			}
		}
	}
	n.sendControl(to, kindIntroduction, i.append)
}

// takeIntroduction handles the introduction of a node.
func (n *Node) takeIntroduction(m *peerMessage) error {
	i, ask := m.introduction, uint64(0)
	b := n.bootstrap
	if b != nil && b.takeAnswer(m.name, m.id, m.groupID, *i) {
		ask = b.number
	}
	if i.question != 0 || ask != 0 {
		n.sendIntroduction(m.name, i.question, ask)
	}
	if i.question != 0 && m.groupID == 0 && b == nil {
		if n.waitingPeers == nil || len(n.waitingPeers) >= membersMax {
			n.waitingPeers = map[string]uint64{}
		}
		n.waitingPeers[m.name] = i.question
	}
	if err := n.takeMemberID(m); err != nil {
		return err
	}
	switch {
	case b == nil:
		if m.groupID != 0 && m.groupID != n.core.groupID {
			n.refuseOtherGroup(m)
		}
		return nil
	case n.core.groupID == 0:
		return n.bootstrapStep()
	case m.groupID == n.core.groupID && len(i.members) > 0:
		return n.takeMemberAnswer(m)
	}
	return nil
}

// takeMemberAnswer handles the introduction of a member while this node has joined but
// does not have the log yet.
func (n *Node) takeMemberAnswer(m *peerMessage) error {
	i := m.introduction
	for _, o := range i.members {
		if o.ID == n.core.id {
			n.updatePeers(i.members)
			return nil
		}
	}
	if _, configured := n.config.Core.Peers[m.name]; configured && i.knowsLeader && i.index > n.record.Since {
		return ErrRemoved
	}
	return nil
}

// sendControl sends a message that is not of the engine.
func (n *Node) sendControl(to string, k kind, payload func([]byte) []byte) {
	if t := n.config.Transport; t != nil {
		b := payload(envelope{k, n.core.groupID, n.core.id}.append(nil))
		t.Send(to, transport.Message{Group: n.config.Group, Payload: b, Class: transport.Urgent})
	}
}

// step passes a message of the group to the core.
func (n *Node) step(m *peerMessage) {
	if n.admit(m) {
		n.logIgnored(m, n.core.Step(m.id, m.Message))
	}
}

// admit reports whether a message of the group was sent by the node that it names.
func (n *Node) admit(m *peerMessage) bool {
	member, known := n.core.members[m.id]
	switch {
	case known && !n.mayBeMember(&member, m.name):
		n.rateLimits.log(n, "name "+m.name, func() {
			n.logger.Warn("raft: a message is ignored: its sender claims to be another node", slog.String("sender", m.name), slog.String("says", member.Name))
		})
		return false
	case !known && len(n.core.members) > 0:
		n.sendNotice(m, notMember)
	}
	n.notePeerName(m.id, m.name)
	if m.name == member.Name && n.transportPeers[member.Was] {
		n.updatePeers(n.core.members.list()) // updatePeers removes the old name
	}
	if known {
		n.core.Clock(m.id, m.wall)
		n.core.noteLease(m.id, m.lease)
	}
	return true
}

// mayBeMember reports whether a node with some name may be the member o. The member may
// have been renamed while this node was down. Then the member sends no message under the
// name that this node knows.
func (n *Node) mayBeMember(o *Member, name string) bool {
	if o.Name == name || o.Was == name {
		return true
	}
	for _, other := range n.core.members {
		if other.Name == name || other.Was == name {
			return false
		}
	}
	return n.peerNames[o.ID] == name || !n.core.heardWithin(o.ID, 1)
}

// refuseOtherGroup handles a message of another group.
func (n *Node) refuseOtherGroup(m *peerMessage) {
	if b := n.bootstrap; n.core.groupID == 0 {
		if b.noteSender(m.name) {
			n.sendIntroduction(m.name, 0, b.number)
		}
		return
	}
	n.otherGroupMessages++
	n.logOtherGroup(m, "refused a message")
	n.sendNotice(m, notGroup)
}

func (n *Node) logOtherGroup(m *peerMessage, what string) {
	n.rateLimits.log(n, "group "+m.name, func() {
		n.logger.Error("raft: "+what+": there are two groups of this name, because both were founded or one was recovered from a log. Stop the nodes of the wrong group, and empty their folders",
			slog.String("peer", m.name), slog.String("its_group", groupText(m.groupID)), slog.String("group", groupText(n.core.groupID)))
	})
}

// sendNotice sends the reason to a node whose messages are ignored, at most once per
// election timeout.
func (n *Node) sendNotice(m *peerMessage, reason notReason) {
	n.rateLimits.send(n, fmt.Sprint(reason, m.name), func() {
		n.sendControl(m.name, kindNotice, notice{reason, n.core.applied}.append)
	})
}

// takeNotice handles a notice. A notice from a member that knows more of the log than
// this node means that this node was removed.
func (n *Node) takeNotice(m *peerMessage) {
	switch c := n.core; {
	case c.groupID == 0:
	case m.notice.reason == notGroup && m.groupID != c.groupID:
		n.logOtherGroup(m, "a peer refuses this node's messages")
	case m.notice.reason == notMember && m.groupID == c.groupID:
		member, known := c.members[m.id]
		if known && (member.Name == m.name || member.Was == m.name) && m.notice.index > max(c.applied, n.record.Since) && !c.removed {
			n.logger.Warn("raft: this node was removed from its group, according to "+m.name, slog.String("node", c.config.Name))
			c.Removed()
		}
	}
}

// rateLimits limits the log lines and messages that peers can cause. Time is counted in
// ticks.
type rateLimits struct {
	lastLogged, lastSent map[string]int64
}

const rateLimitsMax = 256 // number of keys; when it is reached, all keys are removed

// log calls f at most once a minute for each key.
func (r *rateLimits) log(n *Node, key string, f func()) {
	atMostEvery(&r.lastLogged, key, n.ticks, int64(time.Minute/n.config.Tick), f)
}

// send calls f at most once per election timeout for each key.
func (r *rateLimits) send(n *Node, key string, f func()) {
	atMostEvery(&r.lastSent, key, n.ticks, int64(n.core.config.ElectionTicks), f)
}

func atMostEvery(m *map[string]int64, key string, now, every int64, f func()) {
	if at, ok := (*m)[key]; ok && now-at < every {
		return
	}
	if *m == nil || len(*m) >= rateLimitsMax {
		*m = map[string]int64{}
	}
	(*m)[key] = now
	f()
}

// newSalt returns random bytes that distinguish groups with the same members.
func newSalt() []byte {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	return salt
}

// address returns the address of a node that will become a member. said is the address in
// the change.
func (n *Node) address(name, said string) string { return cmp.Or(n.config.Core.Peers[name], said) }
