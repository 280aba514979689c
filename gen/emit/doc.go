// Package emit makes Go source of a plan.
//
//	files, err := emit.Emit(p, emit.Options{Wiring: p.Bound})
//
// # Guarantees
//
// The same plan gives the same bytes. Whatever comes from a topology file enters
// the output as an [Ident], an import path, a quoted string or sanitized comment
// text, each made by a function that checks it, so nothing can be injected.
//
// # Design
//
// Everything is decided in the plan; a model holds it with names checked and
// types turned into Go, and one file here writes one kind of declaration from
// it. The output comes in parts, each a Go file of its own for some processors:
// that many can be made, parsed and formatted side by side. Package verify joins
// them.
package emit
