package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/runtime/cluster"
)

// ClusterTable prints where the instances of a topology run.
type ClusterTable struct {
	Node
	Processor string // "": all
	On        string // name of a node; "": all
	JSON      bool
}

func newClusterTable(chosen *command, n *Node) *cobra.Command {
	c := ClusterTable{}
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Print where the instances run",
		Long: `Print where the instances of the topology run, according to the address table of the
node at --addr. EPOCH grows each time an instance gets another place. An instance of a
processor with placement every-node is printed once for each node, with epoch 0.`,
		Example: `  topoctl cluster table --addr 10.0.0.1:7400
  topoctl cluster table --addr 10.0.0.1:7400 --processor counter --node n2
  topoctl cluster table --addr 10.0.0.1:7400 --json | jq -r '.[].node' | sort | uniq -c`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c.Node = *n
			*chosen = c
			return n.check()
		},
	}
	cmd.Flags().StringVar(&c.Processor, "processor", "", "print the instances of this processor only")
	cmd.Flags().StringVar(&c.On, "node", "", "print the instances on this node only")
	addJSON(cmd, &c.JSON)
	return cmd
}

func (c ClusterTable) run(ctx context.Context, s Streams) error {
	r, err := c.ask(ctx, cluster.Command{Show: cluster.ShowTable, Processor: c.Processor, Node: c.On})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.Out, orEmpty(r.Containers))
	}
	t := table{{"PROCESSOR", "INSTANCE", "NODE", "EPOCH"}}
	for _, at := range r.Containers {
		t = append(t, []string{at.Processor, strconv.Itoa(at.Instance), orNone(at.Node), number(at.Epoch)})
	}
	return t.print(s.Out)
}
