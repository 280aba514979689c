package table

import (
	"context"
	"errors"
	"fmt"
)

// Bootstrap defines the plan, the processors and the first placement, once in the life of
// a cluster. first are the nodes of the topology file; they are in the table from now on,
// without a process. Each node may call it, at the same time and at each start: one of the
// transactions succeeds, and a later call changes nothing. It returns a [PlanError] if the
// table has another plan.
func Bootstrap(ctx context.Context, t Table, plan Plan, list []Placement, first []Node) error {
	r := t.Replica()
	if r.Plan() == "" { // the replica may lag behind; the guard decides
		names := make([]string, len(first))
		changes := []Change{Define{plan.Hash, plan.Description, Defined(list)}}
		for i, n := range first {
			names[i] = n.Name
			changes = append(changes, Join{Node{Name: n.Name, Address: n.Address, Roles: n.Roles}})
		}
		assigns, err := Initial(list, names)
		if err != nil {
			return err
		}
		for _, a := range assigns {
			changes = append(changes, a)
		}
		err = repeat(ctx, t, []Guard{PlanIs{""}}, changes)
		if err == nil || !errors.Is(err, ErrGuard) {
			return err
		}
	}
	return checkPlan(r, plan)
}

// repeat is Txn, and repeats the transaction while its outcome is not known. At least one
// guard must fail once the changes were applied.
func repeat(ctx context.Context, t Table, guards []Guard, changes []Change) error {
	for {
		_, err := t.Txn(ctx, guards, changes)
		if !errors.Is(err, ErrUnknown) || ctx.Err() != nil {
			return err
		}
	}
}

func checkPlan(r *Replica, plan Plan) error {
	if got := r.FullPlan(); got.Hash != plan.Hash {
		return &PlanError{Node: plan, Cluster: got}
	}
	return nil
}

// Enter makes this process the process of a node: it waits until the table has a plan,
// joins under the node's name with its boot id, and then becomes a member. When it returns,
// the replica contains the node as a member. It returns a [PlanError] if the cluster was built
// from another topology, and ErrSuperseded if a newer process has joined under the name. If the table
// loses the process before it is a member, which an engine without a total order can do, it joins again.
func Enter(ctx context.Context, t Table, n Node) error {
	return EnterWhen(ctx, t, n, func(context.Context, *Node) error { return nil })
}

// EnterWhen is Enter. Before it replaces another process of the node, which may still run, it calls
// mayReplace, which waits until that process may be replaced.
func EnterWhen(ctx context.Context, t Table, n Node, mayReplace func(ctx context.Context, former *Node) error) error {
	r := t.Replica()
	if err := r.WaitFor(ctx, func(r *Replica) bool { return r.Plan() != "" }); err != nil {
		return fmt.Errorf("table: the first nodes have not agreed on the first placement yet: %w", err)
	}
	former := make(map[Boot]bool) // 0, and the processes before this one
	for {
		before, err := join(ctx, t, n, mayReplace)
		if known := new(PlanError); errors.Is(err, ErrPlan) && !errors.As(err, &known) {
			return &PlanError{Node: Plan{Hash: n.Plan}, Cluster: r.FullPlan()}
		}
		if err != nil {
			return err
		}
		former[0], former[before] = true, true
		err = repeat(ctx, t, nil, []Change{SetState{n.Name, n.Boot, Member}})
		switch {
		case errors.Is(err, ErrSuperseded) && r.Node(n.Name) != nil && former[r.boot(n.Name)]:
		case errors.Is(err, ErrInvalid) && r.Node(n.Name) == nil:
			return &removedError{n.Name}
		default:
			return err
		}
	}
}

// join joins under the node's name. It returns the boot id of the process before.
func join(ctx context.Context, t Table, n Node, mayReplace func(context.Context, *Node) error) (before Boot, err error) {
	r := t.Replica()
	n.State = Joining
	for repeated := false; ; repeated = true {
		former, now := r.Node(n.Name), Boot(0)
		if former != nil {
			now = former.Boot
		}
		if repeated && now == n.Boot {
			return before, nil // a transaction whose answer was lost was applied
		}
		if now != 0 && now != n.Boot {
			if err := mayReplace(ctx, former); err != nil {
				return before, err
			}
		}
		before = now
		// The guard stops a transaction that arrives after this process has ended and the
		// next one has joined.
		_, err := t.Txn(ctx, []Guard{BootIs{n.Name, before}}, []Change{Join{n}})
		if err == nil || !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrGuard) || ctx.Err() != nil {
			return before, err
		}
	}
}

// boot returns the boot id of a node; 0 if the table does not have the node.
func (r *Replica) boot(name string) Boot {
	if n := r.Node(name); n != nil {
		return n.Boot
	}
	return 0
}

// removedError is the ErrSuperseded of a node that the table does not have any more.
type removedError struct{ node string }

func (e *removedError) Error() string {
	return fmt.Sprintf("table: node %q was removed from the address table; start it again to join as a new process", e.node)
}

func (e *removedError) Is(target error) bool { return target == ErrSuperseded }

// Superseded waits until another process has joined under the name of a node, or until
// the node was forgotten, and then returns ErrSuperseded. A process must stop its work in
// the cluster then. It need not if the table has lost the process, which an engine without
// a total order can do. Superseded also returns when ctx or the table ends.
func Superseded(ctx context.Context, r *Replica, name string, boot Boot) error {
	var found *Node
	if err := r.WaitFor(ctx, func(r *Replica) bool {
		found = r.Node(name)
		return found == nil || found.Boot != boot && found.Boot != 0
	}); err != nil {
		return err
	}
	if found == nil {
		return &removedError{name}
	}
	return fmt.Errorf("%w: node %q has the boot id %v, and this process has %v", ErrSuperseded, name, found.Boot, boot)
}

// Remove forgets a node whose process has ended without leaving. boot is its process, as the
// caller has seen it in the table: a newer process remains, and the error matches ErrGuard.
// It returns ErrInUse if the node has containers. If the error matches ErrUnknown, Remove can
// be called again.
func Remove(ctx context.Context, t Table, name string, boot Boot) error {
	err := repeat(ctx, t, []Guard{BootIs{name, boot}}, []Change{Forget{name}})
	if errors.Is(err, ErrGuard) && t.Replica().Node(name) == nil {
		return nil // a transaction whose answer was lost, or that of another node
	}
	return err
}

// leftKept is the number of nodes that have left and stay in the table, so that commands
// show them. Where each process has a name of its own, they would fill the table.
const leftKept = 64

// Leave says that a node has left, and forgets nodes that have left if there are too many.
func Leave(ctx context.Context, t Table, name string, boot Boot) error {
	var guards []Guard
	changes := []Change{SetState{name, boot, Left}}
	var left []*Node
	for _, n := range t.Replica().Nodes() {
		if n.State == Left && n.Name != name {
			left = append(left, n)
		}
	}
	for _, n := range left[:max(0, len(left)-leftKept+1)] {
		guards = append(guards, BootIs{n.Name, n.Boot}, StateIs{n.Name, Left})
		changes = append(changes, Forget{n.Name})
	}
	_, err := t.Txn(ctx, guards, changes)
	if errors.Is(err, ErrGuard) { // one of them has come back, or another node forgets them
		_, err = t.Txn(ctx, nil, changes[:1])
	}
	return err
}
