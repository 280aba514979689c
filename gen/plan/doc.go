// Package plan decides everything that is emitted, as plain values.
//
//	outline, findings := plan.Outline(topology, pkg) // what follows from the file
//	facts := …                                       // what bind finds in Go for it
//	p := plan.Complete(outline, facts)
//
// None of the three changes after it was made. emit turns a Plan into files. A Plan
// holds no position, no go/types object and no map, so that equal plans hash equally on
// every machine: the hash stands in the header of the generated files.
package plan
