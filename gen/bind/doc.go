// Package bind finds the Go declarations that a topology names: the types of its
// messages and processors, the methods that handle its messages, the fields of its
// keys, and the functions and configurations that make its instances.
//
//	results, err := bind.Bind(ctx, []bind.Input{{Topology: t, Dir: dir}}, bind.Options{})
//	if r := results[0]; r.PortsReady {
//		files := … // emitted from plan.Complete(r.Outline, r.Facts) and parsed
//		verified, err := r.Verify(ctx, files)
//	}
//
// # Guarantees
//
// One run finds all errors. A missing declaration is reported at its place in the
// topology, a declaration of a wrong shape at its place in Go. User code normally
// does not compile before the first build, because it uses generated declarations.
// Therefore package bind adds those declarations as an overlay. It never reads
// generated files from disk, so stale ones cannot block a build.
//
// # Design
//
// One packages.Load for each module loads the export data of the imported packages.
// The generated packages themselves are checked from source. The load requests only
// names, imports and export files. With the overlay of packages.Load, it would check
// every dependency from source; a request for the generated package would try to
// compile a package that does not compile yet. Package cache keeps the answer of the
// go command.
//
// # Limits
//
// Files are chosen by the build constraints for this tool's Go release, GOOS, GOARCH
// and the -tags of Options.Flags and GOFLAGS. From other files and from tests, only the
// names at package level are used, because another build compiles these files together
// with the output.
//
// The go command and each type check may take up to three minutes.
package bind
