package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Exit codes, as those of topogen.
const (
	exitSuccess  = 0
	exitNegative = 1
	exitUsage    = 2
	exitOther    = 3
)

// negative is the outcome of a command that did its work and found a problem, as topogen
// finds mistakes in a file.
type negative string

func (n negative) Error() string { return string(n) }

// Streams are the streams of the process that a command may use.
type Streams struct {
	Out io.Writer // data
	Err io.Writer // messages for people
}

// System returns the streams of this process.
func System() Streams { return Streams{Out: os.Stdout, Err: os.Stderr} }

// command is a parsed command line, such as Errors or Version.
type command interface {
	run(ctx context.Context, s Streams) error
}

// Run runs the command in args, which do not include the program's name, and returns
// the exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	command, err := parse(args, s)
	if err == nil && command != nil {
		err = command.run(ctx, s)
	}
	var usage *usageError
	var found negative
	switch {
	case err == nil:
		return exitSuccess
	case errors.As(err, &usage):
		fmt.Fprintln(s.Err, usage)
		return exitUsage
	case errors.As(err, &found):
		fmt.Fprintf(s.Err, "topoctl: %s\n", oneLine(found.Error()))
		return exitNegative
	default:
		fmt.Fprintf(s.Err, "topoctl: %v\n", err)
		return exitOther
	}
}
