// Command topoctl operates running topologies and reads their files. See
// `topoctl --help`.
package main

import (
	"context"
	"os"

	"github.com/topogen/topogen/cmd/topoctl/internal/cli"
)

func main() { os.Exit(cli.Run(context.Background(), os.Args[1:], cli.System())) }
