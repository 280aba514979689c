// Package launch compiles a generated topology into a program and runs it, for
// `topogen run`.
//
//	code, err := launch.Run(ctx, launch.Program{Dir: dir, Package: "main", …}, launch.Streams{…})
//
// If the topology's package is main, that is the program. Otherwise launch supplies a
// main function, which calls New and Run. It is compiled with go build -overlay, in a
// folder below the package that does not exist on disk. So it may import the same
// packages as the topology's package, and leaves no files in the module.
//
// # Interrupts
//
// The first interrupt drains the program, the second one kills it. The supplied main
// function is notified through a pipe, which also closes when topogen ends, and then
// handles the next signal itself. A main function of the user gets the signal. It has its
// own process group, so that it gets the signal once. In the foreground of a terminal the
// program shares the process group of topogen so that it can read, and the terminal
// itself sends it the interrupt.
//
// # Status
//
// On a terminal the program is built so that it writes the figures of the topology to a
// pipe. Its output goes through topogen, which keeps the status line below it.
//
// # Nodes
//
// With Program.Nodes, the program is compiled once and started once for each node, with
// generated ports, folders and certificates in one temporary folder. A second program, which
// is compiled against the same runtime, makes the certificates. Each line of a node's output
// gets the name of the node. On a terminal the status has a line for each node. Interrupts go
// to all nodes. The first failure of a node stops the others, which have two seconds to drain. A node that was
// killed from outside does not. If topogen is killed, the nodes drain, and the temporary folder remains.
//
// # Failures
//
// If the topology handles failures, the program is built so that it prints restarts,
// broken inputs and the warnings of the pool to stderr: one line each, at most ten per
// second. A logger or an observer of the program takes precedence.
package launch
