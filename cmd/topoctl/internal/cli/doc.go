// Package cli is the topoctl command without its process: arguments and streams
// go in, an exit code comes out.
//
//	code := cli.Run(ctx, os.Args[1:], cli.System())
//
// Run turns the arguments into a command, which is a plain value such as
// Errors{File: …, Full: true}, and then runs that value.
//
// # Guarantees
//
// Data goes to stdout, words for people to stderr. What was recorded may hold
// anything, by way of an error about somebody's input: nothing that commands a
// terminal, or turns the direction of text, is printed as it is.
//
// Exit codes are those of topogen: 0 (all right), 2 (wrong usage) and 3 (anything
// else, a file that cannot be read for example).
package cli
