package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/cluster"
)

func newCluster(chosen *command) *cobra.Command {
	n := Node{Timeout: nodeTimeout, service: "a cluster"}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Operate a topology that runs on several nodes",
		Long: `Operate a topology that runs on several nodes. The commands ask the node that listens
on --addr. status, nodes and table print what this node knows, and change nothing. Other
nodes may know something else at the same moment. forget changes the address table, which
all nodes share.

With TLS, --cert, --key and --ca are the files of an operator's certificate.
"topoctl certs --operator" creates one for development. A node without TLS accepts
commands from any client that can connect to it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Help(); err != nil {
				return err
			}
			return errNoCommand
		},
	}
	n.addFlags(cmd.PersistentFlags())
	cmd.AddCommand(newClusterStatus(chosen, &n), newClusterNodes(chosen, &n), newClusterTable(chosen, &n),
		newClusterForget(chosen, &n))
	return cmd
}

// ask asks the node of a cluster.
func (n *Node) ask(ctx context.Context, c cluster.Command) (cluster.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, n.Timeout)
	defer cancel()
	r, err := cluster.Operate(ctx, n.Addr, n.files(), c)
	return r, n.explain(err)
}

// addJSON adds the flag of the commands of cluster.
func addJSON(cmd *cobra.Command, json *bool) {
	cmd.Flags().BoolVar(json, "json", false, "print JSON")
}

// orEmpty returns a list that is [] in JSON if it has no elements.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
