package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/cmd/topogen/internal/launch"
	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/write"
)

// Program builds and runs a topology.
type Program struct {
	File  string
	Args  []string
	Quiet bool
	Nodes int // 0: one process runs the whole topology
	Flags buildFlags
}

func newProgram(chosen *command) *cobra.Command {
	p := Program{}
	cmd := &cobra.Command{
		Use:   "run [FILE] [-- ARGS]",
		Short: "Generate, compile and run a topology",
		Long: `Generate Go from a topology, compile it and run it. The default is ` + defaultTopology + ` or
topology.yaml. If its package is main, topogen runs that program. For any other package
topogen runs a program that calls New(Processors{}) and Run. ARGS are the arguments of
the program. Only the generated files remain on disk.

The program runs until all sources are done. A topology that does not end, because of a
Serve that listens, an external processor, or only timers as inputs, runs until an
interrupt.

With --nodes N, topogen starts N processes on this computer, which are the nodes of the
cluster in the topology file. They get the names of the file's nodes, then n1, n2 and so on,
with free ports, certificates and folders that exist only while they run. They have no
input. Their output gets the names of the nodes. The exit code is that of the first process
that fails; the others then have two seconds to drain. A process that is killed from outside
stops no others.

The first interrupt drains the topology, the second one kills the program. On a terminal,
a status line shows messages and rates, restarts, broken inputs, and instances whose
restarts are used up. If the topology file handles failures, each failure, restart, and
broken or recovered input is a line on stderr, at most ten per second, unless the program
has its own logger or observer. The exit code is the exit code of the program.`,
		Example: `  topogen run topology.yml
  topogen run examples/wordcount/topology.yml -- ./docs README.md
  topogen run orders/topology.yml --nodes 4`,
		Args: func(cmd *cobra.Command, args []string) error {
			own := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				own = dash
			}
			if own > 1 {
				return fmt.Errorf("want one topology file, got %d; write the arguments of the program after --", own)
			}
			return nil
		},
		ValidArgsFunction: completeTopologies,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
				args = append([]string{defaultTopology}, args...)
			}
			p.File, p.Args = args[0], args[1:]
			*chosen = p
			return nil
		},
	}
	cmd.Flags().BoolVarP(&p.Quiet, "quiet", "q", false, "print no status line and no lines about failures; the log of the program remains")
	cmd.Flags().Var((*nodeCount)(&p.Nodes), "nodes", "start this many processes, the nodes of the topology's cluster")
	addTags(cmd, &p.Flags)
	return cmd
}

func (p Program) run(ctx context.Context, s Streams) error {
	r := &report{streams: s, format: "text", lenient: true}
	var result gen.Result
	err := interruptibly(ctx, func(ctx context.Context) (err error) {
		result, err = p.build(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	if waiting := unsent(result); waiting != "" && !p.Quiet {
		fmt.Fprintf(s.Err, "topogen: package %s has no main function that sends for %s: the program runs until an interrupt\n", result.Plan.Package, waiting)
	}
	program := p.program(result)
	if p.Nodes > 0 {
		if program.Nodes, err = nodeNames(result.Plan, p.File, p.Nodes); err != nil {
			return err
		}
	}
	code, err := launch.Run(ctx, program, p.streams(s))
	switch {
	case errors.Is(err, launch.ErrCompile): // the go command has printed the errors
		return errFindings
	case err != nil:
		return err
	case code != 0:
		return exitError(code)
	}
	return nil
}

// unsent returns the external processors for which no code sends. Only a main function
// of the user could send for them.
func unsent(result gen.Result) string {
	var names []string
	for _, p := range result.Plan.Processors {
		if p.External && result.Plan.Package != "main" {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

// build writes the output, as the command build does. It needs the plan, which the cache
// does not have.
func (p Program) build(ctx context.Context, r *report) (gen.Result, error) {
	c, err := untilSettled(r, func(before *compilation) (*compilation, error) {
		c := newCompilation(r, []string{p.File}, p.Flags)
		c.before = before
		defer func() { write.Sweep(foldersOfAll(c.sources)...) }()
		if err := c.generate(ctx); err != nil {
			return nil, err
		}
		c.plan()
		c.apply(ctx, io.Discard) // stderr is for the output of the program
		return c, ctx.Err()
	})
	if err != nil || len(c.results) == 0 {
		return gen.Result{}, err
	}
	return c.results[0], nil
}

func (p Program) program(result gen.Result) launch.Program {
	dir := packageDir(result)
	edges := make([]string, len(result.Plan.Edges))
	for i := range edges {
		edges[i] = result.Plan.EdgeText(i)
	}
	return launch.Program{
		Name: result.Plan.Name, Dir: dir, Package: result.Plan.Package, Import: result.Plan.ImportPath,
		Wiring: filepath.Join(dir, result.Plan.Output), Edges: edges, Args: p.Args, Flags: p.Flags,
		Faults: result.Plan.FaultLog > 0 && !p.Quiet, Quiet: p.Quiet,
		Spawns: slices.ContainsFunc(result.Plan.Processors, func(p plan.Processor) bool { return p.Watch != nil && p.Watch.Isolated }),
	}
}

func (p Program) streams(s Streams) launch.Streams {
	status := !p.Quiet && s.smart(s.Err)
	return launch.Streams{In: s.In, Out: s.Out, Err: s.Err, Env: s.Env, Secrets: s.Secrets, Status: status, Shared: status && isTerminal(s.Out)}
}
