// Package lifetime finds handlers that keep what they may use only during their
// call: the pointer to a message, the sender, or the context.
//
//	leaks := lifetime.Check(pkg, handlers)
//	for _, l := range leaks {
//		fmt.Println(pkg.Fset.Position(l.Pos), l.Message())
//	}
//
// The Analyzer does the same for "go vet -vettool"; cmd/topogen-vet is that
// tool. Package bind calls Check for "topogen build" and "topogen check".
//
// # What is reported
//
// A message pointer, a sender or a context must not reach a field, a global, a
// channel, a goroutine or a closure that outlives the call. A finding names the
// parameter, the place where it goes, and the helper that puts it there.
//
//   - A message pointer is the pointer itself, the address of a field of the
//     message, a slice of an array in it, and any value that holds one of these.
//     A copy of the message is legal to keep. So are the slices, maps and pointers
//     that the message holds: the receiver owns them.
//   - A sender may not be used in another goroutine at all. A message pointer and
//     a context may, if the handler waits for the goroutine.
//   - A context that is derived from the context of a call is that context.
//
// # Guarantees
//
// Legal code is not reported: where the analysis does not know, it assumes that
// nothing is kept. It ends: the work on a function is bounded, and a function
// beyond the bounds is assumed to keep nothing. A fault in it gives no result
// instead of ending the program.
//
// # Limits
//
// Calls are followed into functions of the same package. Functions of other
// packages are assumed to keep nothing, but for some of the standard library
// (known.go) and for golang.org/x/sync/errgroup. So are methods that are called
// through an interface, and functions that come from a variable. A goroutine
// counts as waited for if the handler waits for anything.
//
// # Design
//
// Most handlers read fields of their message and call methods of their sender.
// Suspects sees that in the syntax and leaves them out, so that building SSA and
// recording types is paid for only where there is something to look at. To look at all
// handlers of 1,000 such processors takes half as much CPU time again as the rest of the
// build, and 30 MB. A handler with a helper or a closure is looked at: to follow these in
// the syntax would save 25 ms of a build of 100 processors. Of the handlers that are
// left, and of the functions that they call, go/ssa makes a form in which each
// value is computed once. A function and its closures are one unit; an analysis
// after Andersen finds which memory each value may point to, by field but without
// regard to the order of statements. Each unit gets a summary, which says where its
// parameters, and the memory behind them, may go. Callers apply summaries.
package lifetime
