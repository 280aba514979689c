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
	exitSuccess  = 0
	exitFindings = 1 // findings, or differences under --check
	exitUsage    = 2
	exitOther    = 3
)

// command is a parsed command line: Build, Check, Program, Init, Graph, Proto, Schema,
// Explain, Version or Completion.
type command interface {
	run(ctx context.Context, s Streams) error
}

// errFindings ends a command that has already printed its findings.
var errFindings = errors.New("there are findings")

// exitError ends a command with the code of the program that it ran.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("the program ended with %d", int(e)) }

// harmless replaces characters that control a terminal. Messages contain names from
// files.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Run runs the command in args, which do not include the program's name, and returns
// the exit code.
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
		return exitSuccess
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
