package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/gen/write"
)

// Build generates the code of topologies.
type Build struct {
	Files    []string
	Check    bool // write nothing, show differences
	Scaffold bool // write stubs for missing types and methods
	Strict   bool
	Format   string
	Flags    buildFlags
}

func newBuild(chosen *command) *cobra.Command {
	b := Build{}
	cmd := &cobra.Command{
		Use:   "build [PATH...]",
		Short: "Generate Go from topology files",
		Long: `Generate Go from topology files. PATH is a topology file, a folder with one, or
FOLDER/... for all topology files below a folder. The default is ` + defaultTopology + ` or
topology.yaml.

If a topology has errors, build writes only topology_ports_gen.go, and only for the
topologies with errors. This needs a valid topology file and valid message types. An
editor can then complete out.Send… before a handler exists. Type errors in your own Go
code (TG311) do not stop writing.

--check writes nothing. It prints a diff and exits with 1 if the files on disk differ
from the files that build would write. This includes files that are missing or no longer
generated.
--scaffold also writes a stub for each missing processor, method, constructor and
message type, into new files. It never changes existing code.`,
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
	cmd.Flags().BoolVar(&b.Check, "check", false, "write nothing; print a diff, and exit with 1 if a file would change")
	cmd.Flags().BoolVar(&b.Scaffold, "scaffold", false, "also write a stub for each missing processor, method, constructor and message type")
	cmd.Flags().BoolVar(&b.Strict, "strict", false, "treat warnings as errors")
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

// build does everything except printing the findings. The result is nil if nothing has
// changed since a build without errors.
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

// attempt reads the inputs and writes the output. With --check it only plans the
// output.
func (b Build) attempt(ctx context.Context, s Streams, r *report, before *compilation) (*compilation, error) {
	c := newCompilation(r, b.Files, b.Flags)
	c.before = before
	c.noCache = b.Check
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

// compare prints the changes that build would make. With a format for tools, the diff
// goes to stderr, because stdout has the findings.
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
