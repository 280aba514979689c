package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// The address table says which process has the name of a node: the process that has entered it last.
// All other parts of a node follow it. A process enters over another one only while that one is
// not alive, see mayEnter. A process that was replaced is refused by all nodes, and ends.

// claim is a process that claims the name of a node, and what this node knows about the name.
type claim struct {
	process   grpc.Process
	connected *grpc.Connected // another process with the name; nil: none

	entry    *table.Node // in the table of this node; nil: none
	revision uint64      // of the table of this node
	former   bool        // the table has had the process, and has another one now
	lossy    bool        // revisions of two nodes have no order
	alive    bool        // failure detection does not see the node as dead
}

// verdict returns nil if the process may be connected. Otherwise the error matches grpc.ErrHeld or
// grpc.ErrSuperseded.
func (c *claim) verdict() error {
	p, e := &c.process, c.entry
	newer := func(p *grpc.Process) bool { return p.Entered > c.revision && !c.lossy } // the table of this node is behind
	switch {
	case c.connected != nil && newer(&c.connected.Process) && c.connected.Entered > p.Entered:
		return superseded(p, table.Boot(c.connected.Boot), c.connected.Address)
	case e != nil && uint64(e.Boot) == p.Boot, newer(p):
		return nil
	case e != nil && e.Boot != 0 && (c.former || p.Entered > 0 && !c.lossy):
		return superseded(p, e.Boot, e.Address)
	case c.connected != nil:
		return c.connected.Held()
	case e != nil && e.Boot != 0 && e.State < table.Left && e.Address != p.Address && c.alive:
		return &grpc.Refusal{Kind: grpc.ErrHeld, Text: fmt.Sprintf("failure detection does not see the process of node %q at %s as dead: "+
			"two processes use the same identity, or the other has just ended", p.Node, e.Address)}
	}
	return nil
}

func superseded(p *grpc.Process, boot table.Boot, address string) error {
	return &grpc.Refusal{Kind: grpc.ErrSuperseded, Text: fmt.Sprintf("the process with the boot id %v at %s has taken the name %q; the process with the boot id %v must end",
		boot, address, p.Node, table.Boot(p.Boot))}
}

// names decides which processes may be connected to a node. It implements grpc.Identity.
type names struct {
	node    *Node
	recheck func() // of the transport that uses them; nil: none does
	ended   chan struct{}
	endOnce sync.Once
	why     error // valid after ended

	mu      sync.Mutex
	entered uint64              // a revision of the table that has this process; 0: none
	tried   map[string]error    // the last attempt to connect to each peer
	changed chan struct{}       // closed at the next attempt
	listed  map[string]uint64   // boot ids in the table when membersChanged has looked at it last
	former  map[string][]uint64 // boot ids that the table had before, the latest last
}

// formerMax bounds the former processes of a node that are remembered. Each start of a node is one.
const formerMax = 8

func newNames(n *Node) *names {
	return &names{
		node: n, ended: make(chan struct{}), tried: map[string]error{}, changed: make(chan struct{}),
		listed: map[string]uint64{}, former: map[string][]uint64{},
	}
}

// Own implements grpc.Identity.
func (n *names) Own() (boot, entered uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return uint64(n.node.boot), n.entered
}

// Admit implements grpc.Identity.
func (n *names) Admit(p grpc.Process, connected *grpc.Connected) error {
	c := claim{process: p, connected: connected}
	if o := n.node.opened.Load(); o != nil {
		if r := o.replica(); r != nil {
			c.revision = r.Revision().Index // before the entry, which may be newer
			c.entry = r.Node(p.Node)
		}
		c.lossy = losesChanges(o.table)
		c.alive = c.entry != nil && o.detector != nil && isAlive(o.detector, c.entry)
	}
	n.mu.Lock()
	c.former = slices.Contains(n.former[p.Node], p.Boot)
	n.mu.Unlock()
	return c.verdict()
}

func losesChanges(t table.Table) bool {
	l, ok := t.(table.Lossy)
	return ok && l.LosesChanges()
}

// metaOf returns the meta data of a process in failure detection: its boot id in the table. The boot id of
// failure detection is another number, because it orders processes.
func metaOf(boot table.Boot) []byte { return binary.BigEndian.AppendUint64(nil, uint64(boot)) }

// isAlive reports whether failure detection does not see the process of a node as dead. Another process of
// the node may be alive.
func isAlive(d member.Detector, e *table.Node) bool {
	return slices.ContainsFunc(d.Members(), func(m member.Member) bool {
		return m.Name == e.Name && m.State < member.Dead && bytes.Equal(m.Meta, metaOf(e.Boot))
	})
}

// Tried implements grpc.Identity.
func (n *names) Tried(peer string, err error) {
	n.mu.Lock()
	n.tried[peer] = err
	close(n.changed)
	n.changed = make(chan struct{})
	why := n.replacedBy()
	n.mu.Unlock()
	if why != nil {
		n.end(why)
	}
}

// replacedBy returns the refusal that shows that another process has the name of this one. Where two
// tables have no order, it is that of all nodes that this one reaches. The lock must be held.
func (n *names) replacedBy() (why error) {
	if n.entered == 0 {
		return nil
	}
	lossy := false
	if o := n.node.opened.Load(); o != nil {
		lossy = losesChanges(o.table)
	}
	for _, err := range n.tried {
		switch {
		case err == nil && lossy:
			return nil
		case errors.Is(err, grpc.ErrSuperseded), errors.Is(err, grpc.ErrHeld) && lossy:
			why = err
		}
	}
	return why
}

// end ends this process, because another one has its name.
func (n *names) end(why error) {
	n.endOnce.Do(func() {
		n.why = fmt.Errorf("%w: %w", table.ErrSuperseded, why)
		close(n.ended)
	})
}

// within returns a context that also ends when another process has the name.
func (n *names) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-n.ended:
			cancel(n.why)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// isOwner reports whether the table of this node has this process.
func (n *names) isOwner() bool {
	o := n.node.opened.Load()
	if o == nil || o.table == nil {
		return false
	}
	e := o.replica().Node(n.node.settings.node)
	return e != nil && e.Boot == n.node.boot
}

// hasEntered notes that this process is in the table.
func (n *names) hasEntered(r *table.Replica) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.entered = max(1, r.Revision().Index)
}

// tableChanged notes which processes the table has. It ends the connections of others.
func (n *names) tableChanged(nodes []*table.Node) {
	n.mu.Lock()
	changed := false
	for _, e := range nodes {
		before := n.listed[e.Name]
		if before == uint64(e.Boot) {
			continue
		}
		n.listed[e.Name], changed = uint64(e.Boot), true
		f := slices.DeleteFunc(n.former[e.Name], func(b uint64) bool { return b == uint64(e.Boot) })
		if before != 0 {
			f = append(f, before)
		}
		n.former[e.Name] = f[max(0, len(f)-formerMax):]
	}
	if changed && len(n.listed) > len(nodes) { // names that are not in the table any more
		for name := range n.listed {
			if !slices.ContainsFunc(nodes, func(e *table.Node) bool { return e.Name == name }) {
				delete(n.listed, name)
				delete(n.former, name)
			}
		}
	}
	if changed {
		for name := range n.tried {
			if _, first := n.node.settings.Nodes[name]; !first && n.listed[name] == 0 {
				delete(n.tried, name)
			}
		}
	}
	n.mu.Unlock()
	if changed && n.recheck != nil {
		n.recheck()
	}
}

// await waits until a condition about the attempts to connect holds. It is called with the lock held.
func (n *names) await(ctx context.Context, condition func() bool) error {
	for {
		n.mu.Lock()
		holds, changed := condition(), n.changed
		n.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// count counts the nodes that have accepted this process, and the nodes that were tried. held says why a node
// refuses it now, because another process of the node is alive. The lock must be held.
func (n *names) count() (accepted, tried int, held error) {
	for _, err := range n.tried {
		tried++
		switch {
		case err == nil:
			accepted++
		case errors.Is(err, grpc.ErrHeld):
			held = err
		}
	}
	return accepted, tried, held
}

// others is the number of first members without this node.
func (n *names) others() int {
	others := len(n.node.settings.Nodes)
	if _, first := n.node.settings.Nodes[n.node.settings.node]; first {
		others--
	}
	return others
}

// mayJoin waits until the first members have accepted this process, or cannot be reached. While one of
// them sees another process of the node, this one does nothing: it is not in the list of failure
// detection, and has no address table.
func (n *names) mayJoin(ctx context.Context) error {
	if n.recheck == nil {
		return nil
	}
	others := n.others()
	return n.await(ctx, func() bool {
		accepted, tried, held := n.count()
		return held == nil && (tried >= others || 2*accepted > others)
	})
}

// mayEnter waits until this process may replace another one in the table. No node sees that process as alive.
// And another node has accepted this one, unless this process listens where the former one did, or
// there is no other node.
func (n *names) mayEnter(ctx context.Context, former *table.Node) error {
	if n.recheck == nil || former.State == table.Left {
		return nil
	}
	alone := n.others() == 0 || former.Address == n.node.settings.address
	return n.await(ctx, func() bool {
		accepted, _, held := n.count()
		return held == nil && (alone || accepted > 0)
	})
}

// seePause is how often awaitSeen looks.
const seePause = 20 * time.Millisecond

// awaitSeen waits until failure detection sees the nodes that have accepted this process. Where a node that is alone changes
// its table, a process that starts with an empty folder would otherwise found a second table, and its entry would be lost
// when the two are merged.
func (n *names) awaitSeen(ctx context.Context) error {
	if n.recheck == nil {
		return nil
	}
	look := time.NewTicker(seePause)
	defer look.Stop()
	for {
		alive := n.node.alive()
		n.mu.Lock()
		waits := false
		for name, err := range n.tried {
			waits = waits || err == nil && !slices.Contains(alive, name)
		}
		n.mu.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// waiting says why this process may not join; "" if it may.
func (n *names) waiting() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, _, held := n.count(); held != nil && n.entered == 0 {
		return fmt.Sprintf("the end of the other process with its name; stop one of the two (%v)", held)
	}
	return ""
}
