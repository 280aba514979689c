// Package plan decides the contents of the output, as plain values.
//
//	outline, findings := plan.Outline(topology, pkg) // what follows from the file
//	facts := …                                       // what bind finds in Go for it
//	p := plan.Complete(outline, facts)
//
// None of the three changes after its construction. Package emit turns a Plan into files.
// A Plan contains no positions, no go/types objects and no maps, so that equal plans have
// equal hashes everywhere. The hash is in the header of the generated files.
package plan
