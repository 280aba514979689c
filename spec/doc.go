// Package spec reads topology files. It turns the text of a topology.yml into a checked
// [Topology] and a list of [finding.Finding], each with its position.
//
//	topology, findings := spec.Parse("topology.yml", text)
//	sources := map[string][]byte{"topology.yml": text}
//	finding.WriteText(os.Stderr, findings, sources, false)
//	if finding.HasErrors(findings) {
//		os.Exit(1)
//	}
//
// # Guarantees
//
// A topology without error findings is complete: the Go form of every name is an identifier,
// both processors of every edge are declared, every default is filled in, and [ParseType]
// accepts every type expression. Only these names, expressions and numbers and the values
// of with reach generated code.
//
// One call reports all mistakes, sorted by position. It does not report a mistake that only
// follows from another one. Lines and columns are those of an editor: they start at 1,
// columns count characters, and ends are exclusive.
//
// Parse uses no clock, environment or disk. For any input it returns within seconds and with
// at most 1 GB of memory. limits.go lists every limit.
//
// # Design
//
// The YAML library parses the text into nodes but never decodes them, because its decoder
// takes quadratic time for repeated keys, ignores second documents and follows aliases
// without a limit. values.go turns the nodes into a tree of [Value], each with its position.
// schema.go compares this tree with the compiled JSON Schema and reports wrong kinds, keys
// and numbers. A test compares its result for each case with the result of the schema
// library. build.go sets the model from the Values by tables of keys, which a test compares
// with the schema. The check files check the meaning: names, edges, the graph. Package plan
// makes the generated names and reports collisions between them.
package spec
