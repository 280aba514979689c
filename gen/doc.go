// Package gen is the compiler: a topology file in, Go files in memory out.
//
//	result, findings := gen.Generate(ctx, gen.Input{Path: path, Source: source}, gen.Options{})
//	if !finding.HasErrors(findings) {
//		// result.Files are to be written, by package write.
//	}
//
// The stages are functions from value to value: spec.Parse reads and checks the
// file, bind finds what it names in Go, plan decides every name and call, emit
// makes Go of the plan, verify parses, type-checks and formats that. Nothing is
// written here, and nothing depends on the clock, on randomness or on the order
// of a map: the same inputs give the same bytes.
//
// A stage runs on what the one before left whole, so that one run reports
// everything that is wrong and nothing twice.
package gen
