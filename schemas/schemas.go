// Package schemas holds the JSON Schema of topology files, draft 2020-12. It is
// what topogen checks a file with, what `topogen schema` prints, and what editors
// complete with:
//
//	# yaml-language-server: $schema=./topology.schema.json
//
// A test in package spec proves that it names the same keys, defaults and
// limits as the parser.
package schemas

import _ "embed"

// Topology is the text of topology.schema.json. It must not be changed.
//
//go:embed topology.schema.json
var Topology []byte
