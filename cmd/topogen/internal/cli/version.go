package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// modulePath is the module that the command is built from.
const modulePath = "github.com/topogen/topogen"

// Version prints the version of topogen.
type Version struct{}

func newVersion(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of topogen",
		Example: `  topogen version`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*chosen = Version{}
			return nil
		},
	}
}

func (Version) run(_ context.Context, s Streams) error {
	_, err := fmt.Fprintf(s.Out, "topogen %s %s %s/%s\n", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
