package table

import "fmt"

// Processor is a processor whose instances are in the table. Each instance is a
// container, identified by the processor's name and its number from 0.
type Processor struct {
	Name      string
	Instances int
}

// Change is one change of a transaction: [Define], [Join], [SetState], [Forget],
// [Assign] or [Agree]. The changes of a transaction are applied together. Define must be the first
// one, and no container may be assigned twice.
type Change interface{ change() }

// Define sets the plan and the processors. A processor that had the same name before
// keeps the places of its instances. New instances have no place. Nodes with another plan
// remain in the table and are refused when they join again. The End of another plan is removed.
type Define struct {
	Plan        string // its hash
	Description string // see [Plan]
	Processors  []Processor
}

// Join adds a node, or replaces the process of a node. The node is then joining. With
// boot 0 the node is expected and has no process yet. A process must have the table's
// plan, or it is refused with ErrPlan. The newest process under a name wins; the table
// remembers no earlier boots. A new process gives a new epoch to all instances on the node.
type Join struct{ Node Node }

// SetState moves a node to another state. It is refused with ErrSuperseded if the node's
// process has another boot. Left is refused with ErrInUse while the node has containers.
type SetState struct {
	Name  string
	Boot  Boot
	State NodeState
}

// Forget removes a node from the table. It is refused with ErrInUse while the node has
// containers. The name may be used again.
type Forget struct{ Name string }

// Assign places Count consecutive instances of a processor, from First on, on a node that
// is joining or a member. The epoch of each instance grows, also if it was on this node
// before.
type Assign struct {
	Processor    string
	First, Count int
	Node         string
}

// Agree says that groups of processors have reached phases on all nodes. A group never goes
// back to an earlier phase. The phases hold for the processes that are in the table now. If
// none of them is one for which the former phases hold, a new run of the topology has begun,
// and the former phases are forgotten.
type Agree struct{ Groups []GroupPhase }

func (Define) change()   {}
func (Join) change()     {}
func (SetState) change() {}
func (Forget) change()   {}
func (Assign) change()   {}
func (Agree) change()    {}

// Guard is a condition of a transaction: [PlanIs], [EpochIs], [BootIs], [StateIs],
// [LeaseIs] or [ProcessesAre]. If a guard does not hold, the transaction changes nothing and returns a
// [GuardError].
type Guard interface {
	guard()
	fmt.Stringer
}

// PlanIs holds if the table has this plan. "" holds before the first Define.
type PlanIs struct{ Plan string }

// EpochIs holds if a container has this epoch. A container that was never placed has epoch 0, or
// the last epoch before the Define that has added it.
type EpochIs struct {
	Processor string
	Instance  int
	Epoch     uint64
}

// BootIs holds if a node has this boot. Boot 0 holds if the table does not have the node,
// or if no process has joined under its name.
type BootIs struct {
	Name string
	Boot Boot
}

// StateIs holds if a node is in this state. Forgotten holds if the table does not have
// the node.
type StateIs struct {
	Name  string
	State NodeState
}

// LeaseIs holds if a lease has this token: no other holder has acquired it since.
type LeaseIs struct {
	Name  string
	Token uint64
}

// ProcessesAre holds if the nodes that have not left, and their processes, have this hash: no
// node has joined, left or restarted since.
type ProcessesAre struct{ Hash uint64 }

func (PlanIs) guard()  {}
func (EpochIs) guard() {}
func (BootIs) guard()  {}
func (StateIs) guard() {}
func (LeaseIs) guard() {}

func (ProcessesAre) guard() {}

func (g PlanIs) String() string { return fmt.Sprintf("plan %q", g.Plan) }
func (g EpochIs) String() string {
	return fmt.Sprintf("epoch %d of %s/%d", g.Epoch, g.Processor, g.Instance)
}
func (g BootIs) String() string       { return fmt.Sprintf("boot %v of node %q", g.Boot, g.Name) }
func (g StateIs) String() string      { return fmt.Sprintf("state %v of node %q", g.State, g.Name) }
func (g LeaseIs) String() string      { return fmt.Sprintf("token %d of lease %q", g.Token, g.Name) }
func (g ProcessesAre) String() string { return fmt.Sprintf("processes with the hash %016x", g.Hash) }
