// Command topogen compiles topologies to Go. See `topogen --help`.
package main

import (
	"context"
	"os"

	"github.com/topogen/topogen/cmd/topogen/internal/cli"
)

func main() {
	collectLate()
	os.Exit(cli.Run(context.Background(), os.Args[1:], cli.System()))
}
