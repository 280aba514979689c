// Package emit generates Go source from a plan.
//
//	files, err := emit.Emit(p, emit.Options{Wiring: p.Bound})
//
// # Guarantees
//
// The same plan gives the same bytes. Text from a topology file enters the output
// only as an [Ident], an import path, a quoted string or sanitized comment text.
// A function checks each of them, so no code can be injected.
//
// # Design
//
// The plan contains all decisions. A model holds the plan with checked names and
// with types as Go. Each file of this package writes one kind of declaration from
// the model. The output comes in parts. Each part is a complete Go file for some of
// the processors, so that parts can be made, parsed and formatted in parallel.
// Package verify joins them.
package emit
