package cli

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/gen/graph"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Graph draws a topology.
type Graph struct {
	File   string
	Format string
	Load   string // a file with a snapshot, "-" for stdin; "": none
}

func newGraph(chosen *command) *cobra.Command {
	g := Graph{}
	cmd := &cobra.Command{
		Use:   "graph [FILE]",
		Short: "Draw a topology",
		Long: `Draw a topology. The default is ` + defaultTopology + ` or topology.yaml. The formats are
Mermaid for a README, DOT for Graphviz, JSON for tools, tables for a terminal, and an
SVG picture that is light or dark like the page that shows it.

--load names a file with the JSON of a Snapshot() of the running topology, or - for
stdin. The picture then colors processors by the share of time in which they are busy.
It also shows the messages that they received, how long full queues paused them,
their failures, and the messages that each edge sent, holds and dropped.`,
		Example: `  topogen graph topology.yml
  topogen graph topology.yml --format svg >topology.svg
  topogen graph topology.yml --format svg --load snapshot.json >load.svg`,
		Args:              oneTopology,
		ValidArgsFunction: completeTopologies,
		RunE: func(_ *cobra.Command, args []string) error {
			g.File = filesOrDefault(args)[0]
			*chosen = g
			return nil
		},
	}
	addChoice(cmd, &g.Format, "format", "output format", "mermaid", "dot", "svg", "json", "text")
	cmd.Flags().StringVar(&g.Load, "load", "", "color the picture by the snapshot in this `file`")
	return cmd
}

func (g Graph) run(_ context.Context, s Streams) error {
	r := report{streams: s, format: "text"}
	src, ok := r.read(g.File)
	if ok {
		topology, findings := spec.Parse(src.path, src.text)
		r.add(findings...)
		if !r.failed() && topology != nil {
			picture, findings := g.picture(topology, s.In)
			if g.Format == "svg" && !picture.Drawable() {
				findings = append(findings, finding.Finding{
					Code: finding.Limit, Severity: finding.Error, File: src.path,
					Message:    "the topology is too large for a picture",
					Suggestion: "use --format dot and Graphviz, or --format text",
				})
			}
			r.add(findings...)
			if !finding.HasErrors(findings) {
				if err := printed(s.Out, draw(picture, g.Format)); err != nil {
					return err
				}
			}
		}
	}
	return r.finish()
}

// picture returns the graph of the topology, with its load if a snapshot is given.
func (g Graph) picture(topology *spec.Topology, stdin io.Reader) (graph.Graph, []finding.Finding) {
	if g.Load == "" {
		return graph.FromTopology(topology), nil
	}
	text, path, problem := readSnapshot(g.Load, stdin)
	if problem != nil {
		return graph.Graph{}, []finding.Finding{*problem}
	}
	snapshot, err := graph.ParseSnapshot(text)
	if err != nil {
		return graph.Graph{}, []finding.Finding{{
			Code: finding.SnapshotUnfit, Severity: finding.Error, File: path,
			Message:    "the file is not a snapshot: " + err.Error(),
			Suggestion: "write a snapshot with json.NewEncoder(file).Encode(topology.Snapshot())",
		}}
	}
	return graph.WithLoad(topology, snapshot, path)
}

// readSnapshot reads a snapshot from a file, from stdin, or from a pipe, which a shell
// creates for <(command).
func readSnapshot(name string, stdin io.Reader) (text []byte, path string, problem *finding.Finding) {
	const most = graph.SnapshotMax + 1 // one byte above the limit, so that ParseSnapshot reports it
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, most))
		if err != nil {
			return nil, "", unreadable("stdin", "stdin", err)
		}
		return text, "stdin", nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, "", unreadable(name, name, err)
	}
	if text, err = readStart(path, most); err != nil {
		problem = unreadable(path, name, err)
		problem.Suggestion = "write a snapshot with json.NewEncoder(file).Encode(topology.Snapshot())"
	}
	return text, path, problem
}

func draw(g graph.Graph, format string) []byte {
	switch format {
	case "dot":
		return graph.DOT(g)
	case "svg":
		return graph.SVG(g)
	case "json":
		return graph.JSON(g)
	case "text":
		return graph.Table(g)
	default:
		return graph.Mermaid(g)
	}
}
