package table

import (
	"log/slog"

	"github.com/topogen/topogen/runtime/transport"
)

// Setup is what package cluster gives to the engine that the topology file names.
type Setup struct {
	Topology  string
	Plan      string // hash of the plan of this program
	Node      string // name of this node
	Address   string // host:port, for the other nodes
	First     map[string]string
	Dir       string // folder of this node; it exists
	Transport transport.Transport
	Gone      func(node string) bool // reports whether a node will not come back; nil: none
	Alive     func() []string        // names of the nodes that failure detection sees as alive, with this node
	Logger    *slog.Logger
}

// Opener opens the table on a node. Each engine has a function that makes one.
type Opener func(s Setup) (Table, error)
