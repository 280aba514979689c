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

// Version prints which topogen this is.
type Version struct{}

func newVersion(chosen *command) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print which topogen this is",
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

// ownVersion is the version of the module, "(devel)" where it was built from a
// checkout without one.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
