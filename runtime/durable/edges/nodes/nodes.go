// Package nodes keeps the store of durable edges on the nodes of a processor with raft. The
// generated code of a topology with store: {raft: NAME} names it; other topologies do not
// link it.
//
// The store is a Raft group of its own, next to the one of the processor: with the same
// nodes, addresses, certificates and times, and another folder. A node that does not lead
// forwards operations to the leader over the connections of the group.
package nodes

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/raft"
)

// suffix is added to the name of the group of the processor, and to the path of its folder.
// Package spec has it too.
const suffix = "promises"

// alone is the name of the only node if the program runs without peers.
const alone = "alone"

// setBackVariable is the environment variable for replicated.Config.SetBack.
const setBackVariable = "TOPOGEN_DURABLE_SET_CLOCK_BACK"

// A Processor has nodes: a state machine, or a processor of kind raft.
type Processor interface {
	Neighbor(suffix string) (raft.Config, error)
}

var _ Processor = (*raft.Processor)(nil)

// Open opens the store on the nodes of a processor. It does not wait for a leader.
func Open(p Processor, log *slog.Logger) (edges.Replica, error) {
	c, err := p.Neighbor(suffix)
	if err != nil {
		return nil, err
	}
	c.Logger = log
	setBack, err := strconv.ParseBool(cmp.Or(os.Getenv(setBackVariable), "false"))
	if err != nil {
		return nil, fmt.Errorf("durable: %s must be true or false, got %q", setBackVariable, os.Getenv(setBackVariable))
	}
	n, err := replicated.Open(replicated.Config{Raft: c, Engine: engine.Config{Logger: log}, SetBack: setBack})
	if err != nil {
		return nil, err // not a nil *Node
	}
	return &replica{n, cmp.Or(c.Node, alone)}, nil
}

type replica struct {
	*replicated.Node
	name string
}

// Name is the name of this node.
func (r *replica) Name() string { return r.name }
