package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/gen/write"
)

// Build generates what topologies give.
type Build struct {
	Files    []string
	Check    bool // write nothing, show differences
	Scaffold bool // write stubs for what is missing
	Strict   bool
	Format   string
	Flags    buildFlags
}

func newBuild(chosen *command) *cobra.Command {
	b := Build{}
	cmd := &cobra.Command{
		Use:   "build [FILE | FOLDER | FOLDER/...]…",
		Short: "Generate Go from topology files",
		Long: `Generate Go from topology files, ` + defaultTopology + ` or topology.yaml by default. A folder
stands for that file in it, and FOLDER/... for all of them below it.

With several files nothing is written unless all are right, except for the ports
(topology_ports_gen.go) of those with errors: the ports are written as soon as a file
and its message types are right, so that an editor completes out.Send… before a
handler exists.

--check writes nothing. It prints a diff and exits with 1 where what is on disk is
not what would be written, missing files and files no longer written included.

--scaffold also writes a stub for each missing processor, method, constructor and
message type, into files of its own; code that stands is never touched.`,
		Example: `  topogen build
  topogen build --scaffold orders/topology.yml
  topogen build --check --format github ./...

  //go:generate go tool topogen build`,
		ValidArgsFunction: completeTopologies,
		RunE: func(_ *cobra.Command, args []string) error {
			b.Files = filesOrDefault(args)
			*chosen = b
			return nil
		},
	}
	cmd.Flags().BoolVar(&b.Check, "check", false, "write nothing; show what would change, and exit with 1 if anything would")
	cmd.Flags().BoolVar(&b.Scaffold, "scaffold", false, "also write a stub for each missing processor, method, constructor and message type")
	cmd.Flags().BoolVar(&b.Strict, "strict", false, "take warnings for errors")
	addFormat(cmd, &b.Format)
	addTags(cmd, &b.Flags)
	cmd.MarkFlagsMutuallyExclusive("check", "scaffold")
	return cmd
}

func filesOrDefault(args []string) []string {
	if len(args) == 0 {
		return []string{defaultTopology}
	}
	return args
}

func (b Build) run(ctx context.Context, s Streams) error {
	r := &report{streams: s, format: b.Format, strict: b.Strict, lenient: true}
	err := interruptibly(ctx, func(ctx context.Context) error {
		_, err := b.build(ctx, s, r)
		return err
	})
	if err != nil {
		return err
	}
	return r.finish()
}

// build does all but print the findings. The result is nil where nothing had
// changed since a build that had no errors.
func (b Build) build(ctx context.Context, s Streams, r *report) (*compilation, error) {
	c, err := untilSettled(r, func(before *compilation) (*compilation, error) { return b.attempt(ctx, s, r, before) })
	if err != nil || c == nil {
		return nil, err
	}
	if b.Check {
		if err := b.compare(s, r, c.planned); err != nil {
			return nil, err
		}
	}
	c.record()
	return c, nil
}

// attempt reads everything, and writes what it gives unless that is only to be
// compared.
func (b Build) attempt(ctx context.Context, s Streams, r *report, before *compilation) (*compilation, error) {
	c := newCompilation(r, b.Files, b.Flags)
	c.before = before
	c.afresh = b.Check
	if folders := foldersOfAll(c.sources); !b.Check {
		defer write.Sweep(folders...)
	}
	if c.recall(); len(c.sources) == 0 {
		return nil, nil
	}
	if err := c.generate(ctx); err != nil {
		return nil, err
	}
	if b.Scaffold {
		if err := c.scaffold(ctx, s.Err); err != nil {
			return nil, err
		}
	}
	c.plan()
	if !b.Check {
		c.apply(ctx, s.Err)
	} else if path := c.changed(); path != "" {
		r.add(write.ChangedInput(path))
	}
	return c, ctx.Err()
}

// compare shows what build would write. Among formats for tools there is no
// place for a diff on stdout.
func (b Build) compare(s Streams, r *report, outcomes []outcome) error {
	var out io.Writer = s.Out
	if b.Format != "text" {
		out = s.Err
	}
	for _, o := range outcomes {
		if err := o.changes.Diff(out); err != nil {
			return err
		}
		r.add(o.changes.Check()...)
	}
	return nil
}
