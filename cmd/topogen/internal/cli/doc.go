// Package cli is the topogen command without its process: arguments, streams
// and environment go in, an exit code comes out.
//
//	code := cli.Run(ctx, os.Args[1:], cli.System())
//
// Run turns the arguments into a command, which is a plain value such as
// Build{Files: …, Check: true}, and then runs that value. So what a command line
// means and what a command does are two things, and each is small.
//
// # Guarantees
//
// Data goes to stdout: pictures, the schema, differences, and findings in a
// format that tools read. Words for people go to stderr, findings as text among
// them. So stdout can always be piped on.
//
// Exit codes are 0 (all right), 1 (findings or differences), 2 (wrong usage) and
// 3 (anything else); `topogen run` exits with the code of the program.
package cli
