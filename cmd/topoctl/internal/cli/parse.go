package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a command line that asks for nothing that there is.
type usageError struct {
	path string // "topoctl errors"
	err  error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s: %s\nRun \"%s --help\" for how to call it.", e.path, strings.TrimSpace(e.err.Error()), e.path)
}

func (e *usageError) Unwrap() error { return e.err }

// errNoCommand follows the help that is printed where no command is named.
var errNoCommand = errors.New("name one of the commands above")

// parse turns arguments into the command that they ask for. The command is nil
// where the answer, help, has been printed already.
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

// newRoot returns the tree of commands. Those that run set chosen and do nothing
// else, so every error of the tree is one of usage.
func newRoot(chosen *command) *cobra.Command {
	root := &cobra.Command{
		Use:   "topoctl",
		Short: "Operate running topologies, and read what they leave behind",
		Long: `topoctl operates running topologies, and reads what they leave behind.

Data goes to stdout, words to stderr. Exit codes: 0 all right, 2 wrong usage,
3 anything else.`,
		Example: `  topoctl errors errors.pb                        # which errors, how often, when last
  topoctl log verify ledger                       # is the log of a state machine whole
  topoctl raft status --addr 10.0.0.1:7101        # who leads`,
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
	root.AddCommand(newErrors(chosen), newLog(chosen), newRaft(chosen), newCerts(chosen), newVersion(chosen))
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

// choice is the value of a flag that takes one of a few words, the first by
// default.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string {
	if c.value == nil { // the help asks the zero value
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return strings.Join(c.words, "|") }

func (c choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("want " + strings.Join(c.words, " or "))
	}
	*c.value = word
	return nil
}
