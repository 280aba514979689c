// Command node is a node of clusterprocesses. Tests build it with calls of points.At in the runtime.
package main

import (
	"os"

	"github.com/topogen/topogen/generated_test/clusterprocesses"
	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/points"
)

func main() {
	child.Run(map[string]func() error{"clusterprocesses": func() error {
		points.At("before start")
		return clusterprocesses.RunNode()
	}})
	os.Exit(2) // the test sets the variable of package child
}
