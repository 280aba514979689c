// Package bind finds in Go what a topology names: the types of its messages and
// processors, the methods that take its messages, the fields of its keys, the
// functions and configurations that make its instances.
//
//	results, err := bind.Bind(ctx, []bind.Input{{Topology: t, Dir: dir}}, bind.Options{})
//	if r := results[0]; r.PortsReady {
//		files := … // emitted from plan.Complete(r.Outline, r.Facts) and parsed
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
// One packages.Load for each module brings the export data of what the packages
// import, and the packages themselves are checked from source. It is asked for names,
// imports and export files alone. Its own overlay would make it check every dependency
// from source, and asking it for the package itself would compile, in vain, what does
// not compile yet. The answer of the go command is remembered (package cache).
//
// # Limits
//
// Files are chosen by the build constraints that hold for this tool's Go
// release, GOOS, GOARCH and the -tags of Options.Flags and GOFLAGS. Of other files and
// of tests only the names at package level count, because another build compiles them
// with the output.
//
// The go command, and each type check, may take three minutes.
package bind
