package table

// Event is a transaction that was applied, or a snapshot. It is shared by all watchers,
// who must not change it.
type Event struct {
	Revision
	Snapshot *Snapshot    // not nil: replaces everything that the watcher knows; the other fields are empty
	Define   *Define      // not nil: the plan and the processors were set; containers that were removed cause no moves
	Nodes    []Node       // nodes as they are now, by name; Forgotten: removed
	Moves    []Move       // containers that were placed
	Leases   []LeaseState // leases as they are now; without a holder: released
	End      *End         // not nil: how far the nodes have agreed about the end
}

// Move is a list of consecutive containers that were placed on a node.
type Move struct {
	Processor    string
	First, Count int
	From         string // the node before; "": none
	To           string
	Epoch        uint64 // of each container, now. The Epoch of a node in Nodes is also that of its containers
}

// LeaseState is a lease in the table. The engine etcd keeps its leases in etcd, and
// therefore reports none.
type LeaseState struct {
	Name   string
	Holder string // "": no holder
	Token  uint64
}

func (e *Event) empty() bool {
	return e.Define == nil && len(e.Nodes) == 0 && len(e.Moves) == 0 && len(e.Leases) == 0 && e.End == nil
}

// weight is how much memory an event takes, in nodes, moves and leases.
func (e *Event) weight() int {
	n := 1 + len(e.Nodes) + len(e.Moves) + len(e.Leases)
	if e.Define != nil {
		n += len(e.Define.Processors) + len(e.Define.Description)/64
	}
	if e.End != nil {
		n += len(e.End.Processes)
	}
	return n
}
