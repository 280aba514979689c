// Package launch compiles a generated topology into a program and runs it, for
// `topogen run`.
//
//	code, err := launch.Run(ctx, launch.Program{Dir: dir, Package: "main", …}, launch.Streams{…})
//
// Where the topology's package is main it is the program. Else the program is a
// main of ours, which calls New and Run. It is laid over a folder below the
// package that does not exist (go build -overlay), so that it may import what
// the package may and nothing is left behind in the module.
//
// # Interrupts
//
// The first interrupt lets the program drain, the second one kills it. A main of
// ours is told through a pipe, which also ends when we do, and then heeds the next
// signal itself; a main of the user's gets the signal, in a process group of its
// own, so that it gets it once. In the foreground of a terminal, where it shares
// our group so that it can read, the terminal itself sends it an interrupt.
//
// # Status
//
// On a terminal the program is built so that it writes the figures of the
// topology into a pipe, and its output goes through ours, which keeps the status
// line below it.
//
// # Failures
//
// Where the topology says what becomes of failures, the program is built so that
// it says restarts, broken inputs and what the pool logs besides on its stderr: a
// line each, ten a second at most. It does not go beyond a logger or an observer
// of the program's own.
package launch
