// Package cli is the topoctl command without its process. It takes arguments and
// streams, and returns an exit code.
//
//	code := cli.Run(ctx, os.Args[1:], cli.System())
//
// Run turns the arguments into a command, which is a plain value such as
// Errors{File: …, Full: true}, and then runs that value.
//
// # Guarantees
//
// Data goes to stdout, messages for people go to stderr. A recorded error may
// contain any text, for example a user's input. Characters that control a terminal
// or change the direction of text are printed as codes.
//
// The exit codes are those of topogen: 0 for success, 1 for a problem that a command has
// found, 2 for wrong usage, and 3 for any other failure, such as a file that cannot be
// read.
package cli
