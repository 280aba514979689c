package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is an invalid command line.
type usageError struct {
	path string // "topoctl errors"
	err  error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s: %s\nRun \"%s --help\" for usage.", e.path, strings.TrimSpace(e.err.Error()), e.path)
}

func (e *usageError) Unwrap() error { return e.err }

// errNoCommand is printed after the help if no command is named.
var errNoCommand = errors.New("name one of the commands above")

// parse turns arguments into a command. The command is nil if help was requested and
// has been printed.
func parse(args []string, s Streams) (command, error) {
	var chosen command
	root := newRoot(&chosen)
	root.SetArgs(args)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	at, err := root.ExecuteC()
	if err != nil {
		return nil, &usageError{path: at.CommandPath(), err: err}
	}
	return chosen, nil
}

// newRoot returns the tree of commands. A command only sets chosen when cobra runs
// it, so every error of the tree is a usage error.
func newRoot(chosen *command) *cobra.Command {
	root := &cobra.Command{
		Use:   "topoctl",
		Short: "Operate running topologies and read their files",
		Long: `topoctl operates running topologies and reads their files.

Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 a negative outcome of
"durable check", "clock", "replay" or "invoke --wait", 2 wrong usage, 3 any other failure.`,
		Example: `  topoctl errors errors.pb                        # errors with their counts
  topoctl log verify ledger                       # check the log of a state machine
  topoctl raft status --addr 10.0.0.1:7101        # roles, leader and progress
  topoctl cluster status --addr 10.0.0.1:7400     # the nodes of a topology
  topoctl durable serve --store ./promises        # a server of durable promises`,
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
	root.AddCommand(newErrors(chosen), newLog(chosen), newRaft(chosen), newCluster(chosen), newDurable(chosen), newCerts(chosen), newVersion(chosen))
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

// choice is a flag whose value is one of a few words. The first word is the default.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string {
	if c.value == nil { // the help calls String of the zero value
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return strings.Join(c.words, "|") }

func (c choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("must be " + strings.Join(c.words, " or "))
	}
	*c.value = word
	return nil
}
