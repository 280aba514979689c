package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/gen/graph"
	"github.com/topogen/topogen/spec"
)

// Graph draws a topology.
type Graph struct {
	File   string
	Format string
}

func newGraph(chosen *command) *cobra.Command {
	g := Graph{}
	cmd := &cobra.Command{
		Use:   "graph FILE",
		Short: "Draw a topology",
		Long: `Draw a topology: as Mermaid for a README, as DOT for Graphviz, as JSON for
tools, or as an SVG picture that is dark where the reader's colour scheme is.`,
		Example: `  topogen graph topology.yml
  topogen graph topology.yml --format svg >topology.svg`,
		Args:              oneOf("a topology file"),
		ValidArgsFunction: completeTopologies,
		RunE: func(_ *cobra.Command, args []string) error {
			g.File = args[0]
			*chosen = g
			return nil
		},
	}
	addChoice(cmd, &g.Format, "format", "what to print", "mermaid", "dot", "svg", "json")
	return cmd
}

func (g Graph) run(_ context.Context, s Streams) error {
	r := report{streams: s, format: "text"}
	src, ok := r.read(g.File)
	if ok {
		topology, findings := spec.Parse(src.path, src.text)
		r.add(findings...)
		if !r.failed() && topology != nil {
			if err := printed(s.Out, draw(graph.FromTopology(topology), g.Format)); err != nil {
				return err
			}
		}
	}
	return r.finish()
}

func draw(g graph.Graph, format string) []byte {
	switch format {
	case "dot":
		return graph.DOT(g)
	case "svg":
		return graph.SVG(g)
	case "json":
		return graph.JSON(g)
	default:
		return graph.Mermaid(g)
	}
}
