// Package plan decides everything that is emitted, as plain values.
//
// bind fills in what it found in Go; emit turns a Plan into files; graph and
// tests read it. A Plan holds no position, no go/types object and no map, so
// that equal plans hash equally on every machine: the hash stands in the header
// of the generated files.
package plan
