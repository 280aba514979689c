package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"
)

// Completion prints a script that completes topogen's arguments in a shell.
type Completion struct {
	Shell string
}

func newCompletion(chosen *command) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script for completion in bash, zsh, fish or powershell",
		Example: `  source <(topogen completion bash)
  topogen completion zsh >"${fpath[1]}/_topogen"
  topogen completion fish >~/.config/fish/completions/topogen.fish`,
		Args:      cobra.MatchAll(oneOf(listed(shells)), cobra.OnlyValidArgs),
		ValidArgs: shells,
		RunE: func(_ *cobra.Command, args []string) error {
			*chosen = Completion{Shell: args[0]}
			return nil
		},
	}
}

func (c Completion) run(_ context.Context, s Streams) error {
	var ignored command
	root := newRoot(&ignored)
	var script bytes.Buffer
	var err error
	switch c.Shell {
	case "bash":
		err = root.GenBashCompletionV2(&script, true)
	case "zsh":
		err = root.GenZshCompletion(&script)
	case "fish":
		err = root.GenFishCompletion(&script, true)
	default:
		err = root.GenPowerShellCompletionWithDesc(&script)
	}
	if err != nil {
		return err
	}
	return printed(s.Out, script.Bytes())
}
