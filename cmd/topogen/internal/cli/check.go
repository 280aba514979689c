package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// Check reports all that is wrong with topologies and the Go that they name.
type Check struct {
	Files  []string
	Strict bool
	Format string
	Flags  buildFlags
}

func newCheck(chosen *command) *cobra.Command {
	c := Check{}
	cmd := &cobra.Command{
		Use:   "check [FILE | FOLDER | FOLDER/...]…",
		Short: "Report all that is wrong with topology files and the Go that they name",
		Long: `Report all that is wrong with topology files (` + defaultTopology + ` or topology.yaml by
default, also in each FOLDER, and in all below FOLDER/...): their
schema, their meaning, and the Go types and methods that they name, in one go.
Nothing is written. What a finding means says topogen explain CODE.`,
		Example: `  topogen check
  topogen check --strict --format sarif topology.yml >topogen.sarif`,
		ValidArgsFunction: completeTopologies,
		RunE: func(_ *cobra.Command, args []string) error {
			c.Files = filesOrDefault(args)
			*chosen = c
			return nil
		},
	}
	cmd.Flags().BoolVar(&c.Strict, "strict", false, "take warnings for errors")
	addFormat(cmd, &c.Format)
	addTags(cmd, &c.Flags)
	return cmd
}

func (c Check) run(ctx context.Context, s Streams) error {
	r := &report{streams: s, format: c.Format, strict: c.Strict}
	if err := interruptibly(ctx, newCompilation(r, c.Files, c.Flags).generate); err != nil {
		return err
	}
	return r.finish()
}
