// Package schemas holds the JSON Schema of topology files, draft 2020-12. topogen checks files
// with it, `topogen schema` prints it, and editors complete with it:
//
//	# yaml-language-server: $schema=./topology.schema.json
//
// A test in package spec checks that the schema has the same keys, defaults and limits as the
// parser.
package schemas

import _ "embed"

// Topology is the text of topology.schema.json. Callers must not modify it.
//
//go:embed topology.schema.json
var Topology []byte
