// Package nodetests_test tests the golden cases that need several nodes: clusters, and state
// machines on groups of nodes. The files of each case begin with its name, and its tests too.
package nodetests_test

import (
	"os"
	"testing"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/speed"
)

// The processes that tests start.
const (
	childServer = "clusterclient"    // a node that clients use
	childNode   = "clusterprocesses" // a node of a fleet
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{childServer: runServer, childNode: runNode})
	speed.Parallel(8, 4) // these tests wait more than they compute
	os.Exit(m.Run())
}
