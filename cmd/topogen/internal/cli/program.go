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

// Program builds a topology and runs it.
type Program struct {
	File  string
	Args  []string
	Quiet bool
	Flags buildFlags
}

func newProgram(chosen *command) *cobra.Command {
	p := Program{}
	cmd := &cobra.Command{
		Use:   "run [FILE] [-- ARGS]",
		Short: "Build, compile and run a topology",
		Long: `Build a topology (` + defaultTopology + ` by default), compile it and run it.
Where its package is main that is the program; else it is one that calls
New(Processors{}) and Run. ARGS are its arguments. Nothing but the generated
files is left behind.

It runs until all sources are done. What waits, such as a Serve that listens, an
external processor or nothing but timers, runs until an interrupt.

An interrupt lets the program drain what is under way; a second one kills it. On a
terminal a status line shows messages and rates, restarts, broken inputs and
instances that were given up. Where the file says what becomes of failures, each
failure, restart and broken or recovered input is a line on stderr, ten a second at
most, unless the program has a logger or an observer of its own. The exit code is
the program's.`,
		Example: `  topogen run topology.yml
  topogen run examples/wordcount/topology.yml -- ./docs README.md`,
		Args: func(cmd *cobra.Command, args []string) error {
			own := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				own = dash
			}
			if own > 1 {
				return errors.New("one topology file is run; write arguments of the program after --")
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
	cmd.Flags().BoolVarP(&p.Quiet, "quiet", "q", false, "no status line, also on a terminal, and no lines about failures but the log's")
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
		fmt.Fprintf(s.Err, "topogen: package %s has no main that sends for %s: an interrupt will end it\n", result.Plan.Package, waiting)
	}
	code, err := launch.Run(ctx, p.program(result), p.streams(s))
	switch {
	case errors.Is(err, launch.ErrCompile): // the go command has said what is wrong
		return errFindings
	case err != nil:
		return err
	case code != 0:
		return exitError(code)
	}
	return nil
}

// unsent names the external processors for which nobody sends, as only a main of
// the user's own could.
func unsent(result gen.Result) string {
	var names []string
	for _, p := range result.Plan.Processors {
		if p.External && result.Plan.Package != "main" {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

// build writes what the topology gives, as build does. It needs the plan, so
// nothing is gained by asking the cache.
func (p Program) build(ctx context.Context, r *report) (gen.Result, error) {
	c, err := untilSettled(r, func(before *compilation) (*compilation, error) {
		c := newCompilation(r, []string{p.File}, p.Flags)
		c.before = before
		defer func() { write.Sweep(foldersOfAll(c.sources)...) }()
		if err := c.generate(ctx); err != nil {
			return nil, err
		}
		c.plan()
		c.apply(ctx, io.Discard) // what is said on stderr is the program's
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
		Faults: result.Plan.FaultLog > 0 && !p.Quiet,
		Again:  slices.ContainsFunc(result.Plan.Processors, func(p plan.Processor) bool { return p.Watch != nil && p.Watch.Isolated }),
	}
}

func (p Program) streams(s Streams) launch.Streams {
	status := !p.Quiet && s.smart(s.Err)
	return launch.Streams{In: s.In, Out: s.Out, Err: s.Err, Env: s.Env, Status: status, Shared: status && isTerminal(s.Out)}
}
