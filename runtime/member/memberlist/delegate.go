package memberlist

import (
	"bytes"
	"time"

	ml "github.com/hashicorp/memberlist"

	"github.com/topogen/topogen/runtime/member"
)

// delegate gives the library the meta data of this node.
type delegate struct{ node member.Node }

func (d *delegate) NodeMeta(int) []byte             { return appendMeta(nil, &d.node) }
func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}

// NotifyJoin implements ml.EventDelegate.
func (d *Detector) NotifyJoin(n *ml.Node) { d.learn(n) }

// NotifyUpdate implements ml.EventDelegate.
func (d *Detector) NotifyUpdate(n *ml.Node) { d.learn(n) }

// NotifyLeave implements ml.EventDelegate: the node is dead, or has left.
func (d *Detector) NotifyLeave(n *ml.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.members[n.Name]
	switch {
	case e == nil || n.Name == d.settings.Node.Name:
	case e.State == member.Left:
	case e.leaves == e.Boot:
		d.set(e, member.Left, member.EventLeft)
	default:
		d.set(e, member.Dead, member.EventDead)
	}
}

// NotifyConflict implements ml.ConflictDelegate: two nodes with one name have different
// addresses.
func (d *Detector) NotifyConflict(existing, _ *ml.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.members[existing.Name]; e != nil {
		d.events.Add(member.Event{Kind: member.EventDuplicate, Member: e.Member})
	}
}

// goodbye notes that a process ends on purpose. The library does not tell this from a death,
// and may report it before or after.
func (d *Detector) goodbye(name string, boot uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.members[name]
	if e == nil || name == d.settings.Node.Name || boot == 0 {
		return
	}
	e.leaves = boot
	if e.State != member.Left && e.Boot == boot {
		d.set(e, member.Left, member.EventLeft)
	}
}

// learn notes that a node is alive.
func (d *Detector) learn(n *ml.Node) {
	if n.Name == d.settings.Node.Name {
		return
	}
	about, err := parseMeta(n.Meta)
	if err != nil {
		d.settings.Logger.Warn("a member was ignored", "name", n.Name, "err", err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.members[n.Name]
	if e == nil {
		e = &entry{Member: member.Member{Name: n.Name, State: member.Dead}}
		d.members[n.Name] = e
	}
	if e.leaves == about.Boot {
		return // old news about a process that ends
	}
	before := e.Member
	e.Address, e.Meta, e.Boot = about.Address, about.Meta, about.Boot
	d.network.setPeer(n.Name, e.Address)
	switch {
	case e.Boot != before.Boot:
		d.set(e, member.Alive, member.EventJoined)
	case before.State != member.Alive:
		d.set(e, member.Alive, member.EventAlive)
	case before.Address != e.Address || !bytes.Equal(before.Meta, e.Meta):
		d.events.Add(member.Event{Kind: member.EventUpdated, Member: e.Member})
	}
}

// set changes the state of a member and reports it, and then the fence if it changes.
func (d *Detector) set(e *entry, s member.State, k member.EventKind) {
	e.State, e.Changed = s, time.Since(d.start)
	d.events.Add(member.Event{Kind: k, Member: e.Member})
	if fenced := d.isFenced(); fenced != d.fenced {
		d.fenced = fenced
		k := member.EventUnfenced
		if fenced {
			k = member.EventFenced
		}
		d.events.Add(member.Event{Kind: k, Member: d.members[d.settings.Node.Name].Member})
	}
}
