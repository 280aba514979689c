// Package plan decides the contents of the output, as plain values.
//
//	outline, findings := plan.Outline(topology, pkg) // all that depends only on the file
//	facts := …                                       // facts that bind finds in Go
//	p := plan.Complete(outline, facts)
//
// Outline, facts and plan do not change after their construction. Package emit turns a Plan into files.
// A Plan contains no positions, no go/types objects and no maps, so that equal plans have
// equal hashes everywhere. The hash is in the header of the generated files.
package plan
