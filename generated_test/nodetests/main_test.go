// Package nodetests_test tests the golden cases that need several nodes: clusters, and state
// machines on groups of nodes. The files of each case begin with its name, and its tests too.
package nodetests_test

import (
	"flag"
	"os"
	"testing"

	"github.com/topogen/topogen/internal/test/child"
)

// The processes that tests start.
const (
	childServer = "clusterclient"    // a node that clients use
	childNode   = "clusterprocesses" // a node of a fleet
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{childServer: runServer, childNode: runNode})
	// These tests wait more than they compute. A flag -parallel replaces this number.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
