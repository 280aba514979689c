package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/schemas"
)

// Schema prints the JSON Schema of topology files.
type Schema struct{}

func newSchema(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of topology files",
		Long: `Print the JSON Schema (draft 2020-12) of topology files. Editors use it to complete and
explain keys, if the first line of the topology file is

    # yaml-language-server: $schema=./topology.schema.json`,
		Example: `  topogen schema >topology.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = Schema{}
			return nil
		},
	}
}

func (Schema) run(_ context.Context, s Streams) error { return printed(s.Out, schemas.Topology) }
