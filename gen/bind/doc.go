// Package bind finds in Go what a topology names: the types of its messages and
// processors, the methods that take its messages, the fields of its keys, the
// functions and configurations that make its instances.
//
//	results, err := bind.Bind(ctx, []bind.Input{{Topology: t, Dir: dir}}, bind.Options{Verify: true})
//	if r := results[0]; r.PortsReady {
//		files := … // emitted from r.Plan: the ports, and the wiring where r.Plan.Bound
//		verified, err := r.Verify(ctx, files)
//	}
//
// # Guarantees
//
// Everything that is wrong is found in one go, each finding at its place: in the
// topology where something is missing, in Go where something has a wrong shape.
// User code that does not compile because nothing was generated yet is the
// normal case: what the generated files would declare is laid over, and our own
// files on disk are never looked at, so stale ones cannot block.
//
// # Design
//
// There is one binder, over go/types, and two ways to give it types. The first
// parses the package and type-checks its declarations (no bodies) with stand-ins
// for the few foreign packages that handlers mention; it starts no process and
// takes a few milliseconds. Where the binder meets a type that the stand-ins do
// not know, or finds anything wrong, it says so, and the second way decides: one
// packages.Load brings the export data of what the package imports, and the
// package itself is checked from source. So the first way cannot give another
// answer than the second: it answers only where it has seen all that matters.
//
// packages.Load is asked for names, imports and export files alone. Its own
// overlay would make it check every dependency from source, and asking it for
// the package itself would compile, in vain, what does not compile yet.
//
// # Limits
//
// Files are chosen by the build constraints that hold for this tool's Go
// release, GOOS, GOARCH and the -tags of Options.Flags and GOFLAGS. Of other files and
// of tests only the names at package level count, because another build compiles them
// with the output.
package bind
