// Package lifetime finds handlers that keep a parameter that is valid only during their
// call: the pointer to a message, the sender, or the context. It also finds updates of state
// machines that keep the pointer to themselves in the state.
//
//	leaks := lifetime.Check(pkg, handlers)
//	for _, l := range leaks {
//		fmt.Println(pkg.Fset.Position(l.Pos), l.Message())
//	}
//
// The Analyzer does the same for "go vet -vettool". The tool is cmd/topogen-vet. Package bind calls Check for "topogen build" and "topogen check".
//
// # What is reported
//
// A message pointer, a sender or a context must not reach a field, a global, a
// channel, a goroutine or a closure that outlives the call. A finding names the
// parameter, the place where it goes, and the helper that puts it there.
//
//   - A message pointer is the pointer itself, the address of a field of the
//     message, a slice of an array in it, and any value that contains one of these.
//     A handler may keep a copy of the message. It may also keep the slices, maps and
//     pointers in the message, because the receiver owns them.
//   - The receiver of an update's methods Update, UpdateAt and Revert is such a pointer, and the
//     state outlives the call. With a log, all updates are decoded into the same memory. The
//     result may contain the pointer, because it is encoded at once.
//   - A sender must not be used in another goroutine at all. A message pointer and
//     a context may be used there if the handler waits for the goroutine.
//   - A context that is derived from the context of a call counts as that context.
//
// # Guarantees
//
// Valid code is not reported: in case of doubt the analysis assumes that nothing is kept.
// The analysis always ends. The work on a function is bounded, and a function beyond the
// bounds is assumed to keep nothing. If the analysis panics, Check returns no leaks.
//
// # Limits
//
// The analysis follows calls into functions of the same package. It assumes that functions
// of other packages keep nothing, except for some of the standard library (known.go) and
// golang.org/x/sync/errgroup. It assumes the same for methods that are called through an
// interface, and for functions that come from a variable. If a handler waits
// for any goroutine, the analysis assumes that it waits for all its goroutines.
//
// # Design
//
// Most handlers only read fields of their message and call methods of their sender.
// Suspects recognizes them by their syntax and omits them, so that SSA and types are needed
// only for the other handlers. A full analysis of all handlers of 1,000 such processors would need
// half as much CPU time as the rest of the build, and 30 MB. A handler with a helper or a
// closure is not omitted: following these in the syntax would save 25 ms in a build of 100
// processors.
//
// For the remaining handlers, and for the functions that they call, go/ssa makes a form in
// which each variable is assigned once. A function and its closures are one unit. A points-to
// analysis (Andersen's) finds the memory to which each value may point. It distinguishes fields,
// but ignores the order of statements, except for the first value of a variable (initial.go).
// Each unit gets a summary, which says where its parameters, and the memory behind them, may go.
// Callers apply summaries.
package lifetime
