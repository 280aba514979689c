package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Exit codes.
const (
	exitRight    = 0
	exitFindings = 1 // findings, or differences under --check
	exitUsage    = 2
	exitOther    = 3
)

// command is what the arguments ask for: Build, Check, Program, Init, Graph,
// Schema, Explain, Version or Completion.
type command interface {
	run(ctx context.Context, s Streams) error
}

// errFindings ends a command that has already said what is wrong.
var errFindings = errors.New("there are findings")

// exitError ends a command with the code of the program that it ran.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("the program ended with %d", int(e)) }

// harmless takes what a terminal would obey out of words with names in them.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Run runs the command that args (without the program's name) ask for, and
// returns the exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	command, err := parse(args, s)
	if err == nil && command != nil {
		err = command.run(ctx, s)
	}
	var usage *usageError
	var code exitError
	var signalled interrupted
	switch {
	case err == nil:
		return exitRight
	case errors.Is(err, errFindings):
		return exitFindings
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &signalled):
		fmt.Fprintf(s.Err, "topogen: %v\n", signalled)
		return signalled.code()
	case errors.As(err, &usage):
		fmt.Fprintln(s.Err, usage)
		return exitUsage
	default:
		fmt.Fprintf(s.Err, "topogen: %s\n", harmless(err.Error()))
		return exitOther
	}
}
