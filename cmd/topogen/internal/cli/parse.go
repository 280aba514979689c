package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is an invalid command line.
type usageError struct {
	path string // "topogen build"
	err  error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s: %s\nRun \"%s --help\" for usage.", e.path, strings.TrimSpace(e.err.Error()), e.path)
}

func (e *usageError) Unwrap() error { return e.err }

// errNoCommand is printed after the help if no command is named.
var errNoCommand = errors.New("name one of the commands above")

// parse turns arguments into a command. The command is nil if help, or words for shell
// completion, were requested and have been printed.
func parse(args []string, s Streams) (command, error) {
	var chosen command
	root := newRoot(&chosen)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	at, err := root.ExecuteC()
	if err != nil {
		return nil, &usageError{path: at.CommandPath(), err: err}
	}
	return chosen, nil
}

// newRoot returns the tree of commands. A command only sets chosen when cobra runs it,
// so every error of the tree is a usage error.
func newRoot(chosen *command) *cobra.Command {
	root := &cobra.Command{
		Use:   "topogen",
		Short: "Generate Go from topologies of processors and messages",
		Long: `topogen generates ordinary, statically typed Go from a topology file. The file declares
processors, and the edges between them with their message types.

Data goes to stdout, messages to stderr. Output has no colors in a pipe or with NO_COLOR.
Exit codes: 0 success, 1 findings or differences, 2 wrong usage, 3 any other failure.`,
		Example: `  topogen init orders && cd orders   # a topology with handlers and tests
  topogen build                      # topology.yml -> topology_gen.go, topology_ports_gen.go
  topogen run topology.yml           # generate, compile and run`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Args is nil so that cobra suggests similar commands for an unknown one.
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			if err := cmd.Help(); err != nil {
				return err
			}
			return errNoCommand
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		newBuild(chosen), newCheck(chosen), newProgram(chosen), newInit(chosen), newGraph(chosen), newProto(chosen),
		newSchema(chosen), newExplain(chosen), newVersion(chosen), newCompletion(chosen),
	)
	return root
}

// oneOf requires exactly one argument.
func oneOf(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return errors.New("name " + what)
		case len(args) > 1:
			return fmt.Errorf("want one argument, %s; got %d", what, len(args))
		}
		return nil
	}
}

// oneTopology requires one topology file, or no argument for the default.
func oneTopology(cmd *cobra.Command, args []string) error {
	return oneOf("a topology file")(cmd, filesOrDefault(args))
}

// completeTopologies offers the files that may be topologies.
func completeTopologies(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yml", "yaml"}, cobra.ShellCompDirectiveFilterFileExt
}

// printed writes data and returns the error, if any.
func printed(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}
