// Package reference holds the pages of the reference that programs read: what
// `topogen explain` prints about a finding is its section of findings.md.
package reference

import _ "embed"

// Findings is the text of findings.md.
//
//go:embed findings.md
var Findings string
