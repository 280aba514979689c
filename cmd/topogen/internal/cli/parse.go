package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a command line that asks for nothing that there is.
type usageError struct {
	path string // "topogen build"
	err  error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s: %s\nRun \"%s --help\" for how to call it.", e.path, strings.TrimSpace(e.err.Error()), e.path)
}

func (e *usageError) Unwrap() error { return e.err }

// errNoCommand follows the help that is printed where no command is named.
var errNoCommand = errors.New("name one of the commands above")

// parse turns arguments into the command that they ask for. The command is nil
// where the answer has been printed already: help, or words for the completion
// of a shell.
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

// newRoot returns the tree of commands. Those that run set chosen and do nothing
// else, so every error of the tree is one of usage.
func newRoot(chosen *command) *cobra.Command {
	root := &cobra.Command{
		Use:   "topogen",
		Short: "Compile topologies of processors and messages to Go",
		Long: `topogen turns a topology file, which says which processors exist and which
edges carry which message between them, into ordinary, statically typed Go.

Data goes to stdout, words to stderr; NO_COLOR and pipes get no colour.
Exit codes: 0 all right, 1 findings or differences, 2 wrong usage, 3 anything else.`,
		Example: `  topogen init orders && cd orders   # a topology with handlers and tests
  topogen build                      # topology.yml -> topology_gen.go, topology_ports_gen.go
  topogen run topology.yml           # build, compile and run`,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Args stays nil: so cobra suggests commands for one that there is not.
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

// oneOf asks for exactly one argument.
func oneOf(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return errors.New("name " + what)
		case len(args) > 1:
			return fmt.Errorf("one argument is enough: %s; there are %d", what, len(args))
		}
		return nil
	}
}

// oneTopology wants one topology file, or none where it is the default.
func oneTopology(cmd *cobra.Command, args []string) error {
	return oneOf("a topology file")(cmd, filesOrDefault(args))
}

// completeTopologies offers the files that may be topologies.
func completeTopologies(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yml", "yaml"}, cobra.ShellCompDirectiveFilterFileExt
}

// printed is the error of writing data, if any.
func printed(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}
