// Package durabletests_test tests the golden cases with durable edges, and the npm SDK against
// the server of durable promises. The files of each case begin with its name, and its tests too.
package durabletests_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/topogen/topogen/internal/test/child"
)

// Nodes that a test kills.
const (
	childNode        = "durablenodes"
	childClusterNode = "clusterdurable"
)

// built is a folder for commands that tests build.
var built string

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{childNode: runNode, childClusterNode: runClusterNode})
	// The tests with processes wait more than they compute. A flag -parallel replaces this number.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := 1
	var err error
	if built, err = os.MkdirTemp("", "durabletests-"); err == nil {
		code = m.Run()
		err = os.RemoveAll(built)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
