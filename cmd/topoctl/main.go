// Command topoctl reads what running topologies leave behind. See
// `topoctl --help`.
package main

import (
	"context"
	"os"

	"github.com/topogen/topogen/cmd/topoctl/internal/cli"
)

func main() { os.Exit(cli.Run(context.Background(), os.Args[1:], cli.System())) }
