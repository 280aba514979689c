package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Exit codes; topogen has 1 for findings.
const (
	exitRight = 0
	exitUsage = 2
	exitOther = 3
)

// Streams is what a command has of the process that it runs in.
type Streams struct {
	Out io.Writer // data
	Err io.Writer // words
}

// System returns the streams of this process.
func System() Streams { return Streams{Out: os.Stdout, Err: os.Stderr} }

// command is what the arguments ask for: Errors or Version.
type command interface {
	run(ctx context.Context, s Streams) error
}

// Run runs the command that args (without the program's name) ask for, and
// returns the exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	command, err := parse(args, s)
	if err == nil && command != nil {
		err = command.run(ctx, s)
	}
	var usage *usageError
	switch {
	case err == nil:
		return exitRight
	case errors.As(err, &usage):
		fmt.Fprintln(s.Err, usage)
		return exitUsage
	default:
		fmt.Fprintf(s.Err, "topoctl: %v\n", err)
		return exitOther
	}
}
