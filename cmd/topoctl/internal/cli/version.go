package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version prints the version of topoctl.
type Version struct{}

func newVersion(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of topoctl",
		Example: `  topoctl version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = Version{}
			return nil
		},
	}
}

func (Version) run(_ context.Context, s Streams) error {
	_, err := fmt.Fprintf(s.Out, "topoctl %s %s %s/%s\n", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// ownVersion returns the version of the module. It is "(devel)" if the command was
// built from a checkout without a version.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
