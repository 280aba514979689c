package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// Check reports the errors in topologies and in the Go code that they name.
type Check struct {
	Files  []string
	Strict bool
	Format string
	Flags  buildFlags
}

func newCheck(chosen *command) *cobra.Command {
	c := Check{}
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Report all errors in topology files and in the Go code that they name",
		Long: `Report all errors in topology files: in their schema, in their meaning, and in the Go
types and methods that they name. PATH is a topology file, a folder with one, or
FOLDER/... for all topology files below a folder. The default is ` + defaultTopology + ` or
topology.yaml.
Nothing is written. "topogen explain CODE" explains a finding.`,
		Example: `  topogen check
  topogen check --strict --format sarif topology.yml >topogen.sarif`,
		ValidArgsFunction: completeTopologies,
		RunE: func(_ *cobra.Command, args []string) error {
			c.Files = filesOrDefault(args)
			*chosen = c
			return nil
		},
	}
	cmd.Flags().BoolVar(&c.Strict, "strict", false, "treat warnings as errors")
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
