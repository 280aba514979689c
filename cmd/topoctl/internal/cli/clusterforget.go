package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/cluster"
)

// ClusterForget removes a node that has crashed from the address table of a cluster.
type ClusterForget struct {
	Node
	Removal cluster.Removal
	JSON    bool
}

func newClusterForget(chosen *command, n *Node) *cobra.Command {
	c := ClusterForget{}
	cmd := &cobra.Command{
		Use:   "forget NODE",
		Short: "Remove a node that has crashed and will not run again",
		Long: `Remove the node NODE from the address table, after its process has ended without
leaving. Until then the others wait for its next process, and the topology does not
finish. Messages that wait for NODE are dropped and counted. Its last messages to other
nodes are handled.

The node at --addr refuses this if NODE is a first member, must run instances that are
placed on it, or is alive according to failure detection. It also refuses if it cannot
know whether NODE is alive, because it is fenced or its failure detection does not know
NODE. --force overrides only the last two reasons: use it if you know that the process
has ended.

The name can be used again: the next process with this name joins as a new node. If the
removed process still runs, it ends with an error as soon as it learns of the removal.`,
		Example: `  topoctl cluster forget n4 --addr 10.0.0.1:7400
  topoctl cluster forget n4 --addr 10.0.0.1:7400 --cert operator-ann.crt --key operator-ann.key --ca ca.crt`,
		Args: oneOf("the node that has crashed"),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Node, c.Removal.Node = *n, args[0]
			*chosen = c
			return n.check()
		},
	}
	cmd.Flags().BoolVar(&c.Removal.Force, "force", false, "the process of NODE has certainly ended, although this node cannot know it")
	addJSON(cmd, &c.JSON)
	return cmd
}

func (c ClusterForget) run(ctx context.Context, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	done, err := cluster.Remove(ctx, c.Addr, c.files(), c.Removal)
	switch {
	case err != nil:
		return c.explain(err)
	case c.JSON:
		return printJSON(s.Out, done)
	}
	fmt.Fprintf(s.Err, "topoctl: %s has removed node %s, at %s, from the address table\n", oneLine(done.By), oneLine(done.Node), oneLine(done.Address))
	return nil
}
