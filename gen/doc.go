// Package gen is the compiler. It turns a topology file into Go files in memory.
//
//	result, findings := gen.Generate(ctx, gen.Input{Path: path, Source: source}, gen.Options{})
//	if !finding.HasErrors(findings) {
//		// package write writes result.Files.
//	}
//
// The stages are functions from value to value: spec.Parse reads and checks the file,
// bind finds the Go declarations that the file names, plan decides every name and call,
// emit turns the plan into Go, and verify parses, type-checks and formats the Go. This
// package writes no files. Nothing depends on the clock, on randomness or on the order
// of a map, so the same inputs give the same bytes.
//
// Each stage processes the parts that have no errors from earlier stages. So one run
// reports all errors, and each only once.
package gen
