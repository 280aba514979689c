// Package cli is the topogen command without its process: arguments, streams
// and environment go in, an exit code comes out.
//
//	code := cli.Run(ctx, os.Args[1:], cli.System())
//
// Run turns the arguments into a command, which is a plain value such as
// Build{Files: …, Check: true}, and then runs that value. So tests can parse a command
// line without running it.
//
// # Guarantees
//
// Data goes to stdout: pictures, the schema, differences, and findings in a
// format for tools. Messages for people go to stderr, including findings as text. So
// stdout can always be piped to another program.
//
// Exit codes are 0 (success), 1 (findings or differences), 2 (wrong usage) and 3 (any
// other failure). `topogen run` exits with the code of the program.
package cli
