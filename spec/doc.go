// Package spec reads topology files: from the text of a topology.yml to a
// checked [Topology] and a list of [finding.Finding], each at its place.
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
// A topology without error findings is whole: every name makes a Go identifier,
// every end of an edge is declared, every default is filled in, and every type
// expression is one that [ParseType] accepts. Nothing of the file reaches
// generated code by another way than these names, expressions and numbers and the
// values of with.
//
// All that is wrong is reported in one go, sorted by position; what only follows
// from something else is not reported. Lines and columns are those of an editor:
// 1-based, columns in characters, ends exclusive.
//
// Parse knows no clock, environment or disk. Any input is answered within
// seconds and 1 GB; limits.go names every limit.
//
// # Design
//
// The YAML library gives a tree of nodes, and nothing is ever decoded by it:
// decoding takes quadratic time for repeated keys, passes over second documents
// and follows aliases without end. One walk over the nodes makes a tree of
// [Value], each with its place. A second walk, through that tree and the compiled
// JSON Schema together, finds wrong kinds, keys and numbers where they are. The
// library compiles the schema; a test holds its verdict on each case against the
// walk. The model is then set from the Values by tables of keys (build.go), which a
// test compares with the schema, and its meaning is checked: names, edges, the
// graph. Whether generated names meet, package plan says, which makes them.
package spec
