package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
)

// Removal is the command of an operator to remove a node from the address table. The node
// has joined, and its process has ended without leaving, so the others wait for it.
type Removal struct {
	Node string `json:"node"`
	// Force says that the operator knows that the process has ended. Without it, failure
	// detection of the node that is asked must know it.
	Force bool `json:"force,omitempty"`
}

// Removed is the answer to a Removal: the node as it was in the address table.
type Removed struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	Boot    string `json:"boot"`
	State   string `json:"state"`
	By      string `json:"by"` // the node that has removed it
}

const (
	// removalTimeMax is the limit of a Removal. The table needs some milliseconds, and some
	// seconds if its nodes must elect a leader first.
	removalTimeMax = 10 * time.Second
	// removalAnswer is how long before the caller's deadline a Removal ends, so that the
	// caller receives the reason.
	removalAnswer = 500 * time.Millisecond
)

// evidence is what a node knows about a node that an operator wants to remove.
type evidence struct {
	self      string
	first     []string
	lossy     bool // the address table may lose the removal
	fenced    bool
	entry     *table.Node // nil: the table does not have the node
	instances int         // that are placed on it
	known     bool        // failure detection knows the node
	state     member.State
}

// refused returns why the node must not be removed whatever the address table has; nil if
// it may be.
func (r *Removal) refused(e *evidence) error {
	switch {
	case r.Node == "":
		return errors.New("name the node to remove")
	case r.Node == e.self:
		return fmt.Errorf("%.300q is the node that was asked: to remove it from the cluster, stop it with SIGTERM. If its process has ended, ask another node", r.Node)
	case slices.Contains(e.first, r.Node):
		return fmt.Errorf("node %.300q is a first member (%s), which cannot be removed: its instances and its vote stay with it. "+
			"Start it again under its name, with an empty folder if its disk was lost", r.Node, strings.Join(e.first, ", "))
	case e.lossy:
		return fmt.Errorf("with addresses: broadcast no node can be removed, because a cut between the nodes may bring it back. "+
			"Start node %.300q again, and stop it with SIGTERM", r.Node)
	case e.fenced && !r.Force:
		return fmt.Errorf("node %s is fenced: it reaches no majority of the nodes, and cannot know which of the others have ended. "+
			"Ask a node that is not fenced. If the process of node %.300q has certainly ended, repeat the command with --force", e.self, r.Node)
	}
	return nil
}

// refusedNow returns why a node of the current table must not be removed.
func (r *Removal) refusedNow(e *evidence) error {
	switch {
	case e.entry == nil:
		return fmt.Errorf("the address table has no node %.300q; \"topoctl cluster nodes\" prints the names", r.Node)
	case e.instances > 0:
		return fmt.Errorf("node %q must run %d instances that are placed on it, so it cannot be removed: start it again", r.Node, e.instances)
	case e.known && e.state == member.Alive:
		return fmt.Errorf("node %q is alive, according to failure detection: stop it with SIGTERM, then it leaves by itself", r.Node)
	case e.known && e.state < member.Dead:
		return fmt.Errorf("node %q does not answer, but failure detection has not declared it dead yet (%v): repeat the command in some seconds", r.Node, e.state)
	case !e.known && !r.Force:
		return fmt.Errorf("failure detection of node %s does not know node %q, so it is not known whether its process has ended: ask another node. "+
			"If the process has certainly ended, repeat the command with --force", e.self, r.Node)
	}
	return nil
}

// errRemoving: a node handles one Removal at a time.
var errRemoving = errors.New("this node removes another node just now; repeat the command")

// remove removes a node from the address table. by is the operator, for the log.
func (n *Node) remove(ctx context.Context, by string, r Removal) (Removed, error) {
	o := n.opened.Load()
	if o == nil || o.lookup == nil {
		return Removed{}, fmt.Errorf("node %s has not joined the cluster yet; ask another node", n.settings.node)
	}
	if !n.removing.CompareAndSwap(false, true) {
		return Removed{}, errRemoving
	}
	defer n.removing.Store(false)
	timeout := removalTimeMax
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		timeout = min(timeout, left-min(removalAnswer, left/4))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := n.evidence(o, r.Node)
	if err := r.refused(e); err != nil {
		return Removed{}, err
	}
	if err := o.table.Sync(ctx); err != nil {
		return Removed{}, removalError(ctx, timeout, fmt.Errorf("nothing was changed: %w", err))
	}
	e = n.evidence(o, r.Node)
	if err := cmp.Or(r.refused(e), r.refusedNow(e)); err != nil {
		return Removed{}, err
	}
	err := table.Remove(ctx, o.table, r.Node, e.entry.Boot)
	switch {
	case errors.Is(err, table.ErrGuard):
		return Removed{}, fmt.Errorf("node %q has come back in the meantime with a new process, so it was not removed", r.Node)
	case errors.Is(err, table.ErrUnknown):
		return Removed{}, removalError(ctx, timeout, fmt.Errorf("it is not known whether node %q was removed, repeat the command: %w", r.Node, err))
	case err != nil:
		return Removed{}, removalError(ctx, timeout, fmt.Errorf("nothing was changed: %w", err))
	}
	done := Removed{r.Node, e.entry.Address, e.entry.Boot.String(), e.entry.State.String(), e.self}
	n.log.Warn("topogen: an operator has removed a node from the address table",
		slog.String("node", done.Node), slog.String("boot", done.Boot), slog.String("operator", by), slog.Bool("force", r.Force))
	return done, nil
}

// removalError explains an error of the address table.
func removalError(ctx context.Context, timeout time.Duration, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("the address table has not answered within %v: it needs a majority of the first members, or its etcd servers. So %w",
		timeout.Round(100*time.Millisecond), err)
}

// evidence collects what this node knows about another one.
func (n *Node) evidence(o *opened, name string) *evidence {
	e := &evidence{
		self: n.settings.node, first: slices.Sorted(maps.Keys(n.settings.Nodes)),
		fenced: o.detector.Fenced(), entry: o.table.Replica().Node(name), instances: o.lookup.placed(name),
	}
	if t, ok := o.table.(table.Lossy); ok {
		e.lossy = t.LosesChanges()
	}
	for _, m := range o.detector.Members() {
		if m.Name == name {
			e.known, e.state = true, m.State
		}
	}
	return e
}
