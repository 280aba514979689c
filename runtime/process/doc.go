// Package process runs an instance of a processor in a separate process. It
// implements `isolation: process`: a fault that Go cannot contain (a handler that
// hangs, memory that runs out, a crash in C code) ends only that process. Generated
// code uses this package on both sides.
//
// In the parent, a proxy represents the instance:
//
//	c, err := process.Start(ctx, process.Settings{Info: process.Info{
//		Topology: "robot", Hash: planHash, Processor: "camera", Instance: 0, Instances: 1}})
//	…
//	a, err := c.Call(kindReceive, edge, payload) // err: the process has ended
//	if a.Err != nil { … }                        // the error that the handler returned
//	for s := range a.Sends() { … }               // the messages that it sent
//
// The process runs the same executable. A generated package calls TakeOver in init,
// before main:
//
//	func init() { process.TakeOver("robot", planHash, newHandler) }
//
// Generated code encodes and decodes the payloads. This package handles frames,
// calls, answers, sends, and the lifecycle of the process.
//
// # Guarantees
//
//   - An answer arrives completely or not at all: the handler's error, its reply and
//     all messages that it sent are one frame. If the process dies before the frame is
//     complete, Call returns an [ExitError], the call has no result, and the caller may
//     repeat it. Side effects of the handler may then have happened twice.
//   - The end of a process is detected during a call and between calls (Done), with its
//     exit code or signal. The process is reaped, and its connection, pipes and
//     goroutines are released without a call of Close. All of its output has been logged
//     by then, unless the logger took longer than 500 ms for a line.
//   - Kill ends the process and everything that it started in its process group,
//     whatever the handler does. A call in progress returns even if the process is
//     blocked in the kernel and does not exit.
//   - The process ends when its parent ends, for whatever reason. On Linux the kernel
//     kills it. On other systems it detects that a pipe was closed, whatever its handler
//     does.
//   - The process runs the same code as its parent. On Linux it runs the same image,
//     even if the file was replaced. On other systems Start fails if the file has
//     changed. The hash of the plan is compared too.
//   - Errors of package topo and of package context keep their identity in both
//     directions. Of other errors only the text is kept, and the stack of a panic.
//
// If a message cannot be encoded, its sender gets an [EncodeError], and the process
// does not receive the message. A call whose messages exceed Info.MessageLimit fails,
// and the process keeps running. Both sides stop encoding at the limit.
//
// The data that a process sends cannot harm its parent. The messages of a frame have
// at most Info.MessageLimit bytes. Memory is allocated as bytes arrive, not as they are
// announced. An answer is checked before it is returned. Output is logged in lines of
// at most 8 KiB without control characters. Only the indices in a Send are unchecked:
// check them. The process runs as the same user, so this isolates faults, not malice.
//
// # The process
//
// Its standard input is empty and its output is logged. It has the environment
// without TOPOGEN_DURABLE_TOKEN, the working directory and the os.Args of the parent, and
// none of the parent's other open files. SIGINT and SIGTERM do not end it, because a service manager sends them to all
// processes of a topology at once; the parent stops the process when its work is done.
// SIGKILL does end it. Handlers do not run on the goroutine of main.
//
// Settings.Memory sets GOMEMLIMIT to 85 % of its value, so that the garbage collector
// works harder before the limit is reached. On Linux the parent also checks the resident
// size every 100 ms and kills the process above the limit; the error matches
// [ErrMemory]. A process can exceed the limit by what it allocates in 100 ms. On other
// systems, memory that Go does not manage is not limited.
//
// # Limits
//
//   - It works on Linux, macOS and the BSDs. On other systems Start returns
//     [ErrUnsupported].
//   - main does not run in the process, so flags are not parsed and main's settings are
//     missing. The same is true of packages that only main imports, and of init functions
//     of the generated package in files that the compiler reads later.
//   - A call, or a send of Serve, takes some 30 µs longer than within one process. A start
//     takes some 3 ms longer than the constructor. A process needs five files and a thread
//     in its parent.
//   - topo.Alive reaches the parent at most every 10 ms.
//   - On systems other than Linux, programs that the process has started keep running
//     if the process exits on its own.
//   - A panic of Settings.Logger ends the parent.
package process
