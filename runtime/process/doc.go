// Package process runs an instance of a processor in a process of its own: the
// mechanism of `isolation: process`. A fault that Go cannot contain, a handler
// that hangs, memory that runs out, a crash in C, ends that process and nothing
// else. Generated code uses it at both ends.
//
// In the parent, a proxy stands for the instance:
//
//	c, err := process.Start(ctx, process.Settings{Info: process.Info{
//		Topology: "robot", Hash: planHash, Processor: "camera", Instance: 0, Instances: 1}})
//	…
//	a, err := c.Call(kindReceive, edge, payload) // err: the process is gone
//	if a.Err != nil { … }                        // what the handler returned
//	for s := range a.Sends() { … }               // what it sent
//
// The process is the same executable. A generated package says in init, before
// main, who it is to be:
//
//	func init() { process.TakeOver("robot", planHash, newHandler) }
//
// What the payloads hold is made and read by generated code. This package knows
// frames, calls, answers, sends, and the life of the process.
//
// # Guarantees
//
//   - An answer arrives whole or not at all: what the handler returned, its reply and
//     all that it sent are one frame. Where the process dies before the frame is
//     complete, Call returns an [ExitError], nothing of the call counts, and it may
//     be made again. Its effects outside may then have happened twice.
//   - A process that has ended is noticed, in a call and between calls (Done), with its
//     exit code or signal; it is reaped, and its connection, pipes and goroutines are
//     given back, without anybody calling Close. What it printed until then has been
//     logged, unless the logger took longer than 100 ms for a line.
//   - Kill ends it whatever it does, with everything that it started in its process
//     group. A call under way returns, also where the process waits in the kernel and
//     does not go.
//   - It ends when its parent ends, however that comes: on Linux the kernel kills it,
//     elsewhere the end of a pipe does, which it notices whatever its handler does.
//   - It runs the code of its parent: on Linux the very image, also where the file has
//     been replaced; elsewhere Start fails when the file is another. The plan's hash
//     is compared besides.
//   - Errors of package topo and of package context keep their identity, both ways.
//     Of others the text is left, of panics the stack too.
//
// A message that cannot be encoded is an error of its sender, an [EncodeError], and
// is not given to the process. A call whose messages are larger than
// Info.MessageLimit fails with an error, and the process goes on. Both ends stop
// encoding at the limit.
//
// A process cannot harm its parent by what it sends: the messages of a frame have at
// most Info.MessageLimit bytes, memory is allocated as bytes arrive and not as they
// are announced, an answer is checked before it is given out, and what it prints is
// logged in lines of at most 8 KiB without control characters. The indices in a Send
// are its own words: check them. It runs as the same user, though: this is isolation
// from faults, not from malice.
//
// # The process
//
// Its standard input is empty, its output is logged, its environment, its working
// directory and os.Args are those of the parent, and of the parent's other open
// files it keeps none. SIGINT and SIGTERM do not end it, as whoever stops the
// topology sends them to all of its processes; what is left to do it hears from its
// parent. SIGKILL does. Handlers run on a goroutine that is not main's.
//
// Settings.Memory sets GOMEMLIMIT to 85 % of itself, so that the collector works
// harder before it is too late. On Linux the parent looks at the resident size each
// 100 ms besides, and kills above the limit; the error matches [ErrMemory]. What a
// process can allocate in 100 ms comes on top, and on other systems memory that is
// not Go's is not bounded.
//
// # Limits
//
//   - Linux, macOS and the BSDs. Elsewhere Start returns [ErrUnsupported].
//   - main does not run in the process, nor what it would have set: flags are not
//     parsed. The same is true of packages that only main imports, and of init
//     functions of the generated package in files that the compiler sees later.
//   - A call costs some 30 µs beyond its handler, a send of Serve the same, a start some
//     3 ms beyond the constructor, on the machine where docs/explanation/processes.md
//     measured them. A process needs five files in its parent and a thread.
//   - topo.Alive is told at most each 10 ms.
//   - Outside of Linux, what a process has started goes on when it exits by itself.
//   - A panic of Settings.Logger ends the parent.
package process
