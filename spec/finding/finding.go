// Package finding defines the findings of topogen with their positions, the catalogue that
// explains each code ([Codes], [Explain]), and the printers for people, editors and CI. A code
// never changes its meaning.
package finding

import (
	"cmp"
	"slices"
)

// Severity is the effect of a finding on the build.
type Severity string

const (
	// Error findings make build and check fail.
	Error Severity = "error"
	// Warning findings (TG4xx) make them fail only with --strict.
	Warning Severity = "warning"
)

// Range is a range in a file. Lines and columns start at 1, columns count characters (runes), and
// the end is exclusive. The zero Range means the whole file.
type Range struct {
	Line      int `json:"line"`
	Column    int `json:"column"`
	EndLine   int `json:"end_line"`
	EndColumn int `json:"end_column"`
}

// Finding is a mistake or a warning at a position. Only the printers (text, JSON, SARIF, GitHub)
// turn findings into output. Tools read the names in the tags, so they never change.
type Finding struct {
	Code       string   `json:"code"` // stable, "TG204"
	Severity   Severity `json:"severity"`
	File       string   `json:"file"` // as the user gave it; the printers make it relative
	Range               // its keys are inlined
	Pointer    string   `json:"pointer"`    // JSON pointer (RFC 6901) into the topology; "" for Go files
	Message    string   `json:"message"`    // one sentence, no trailing period
	Suggestion string   `json:"suggestion"` // what to do or write instead; may be empty
}

// New returns a finding with the severity that the catalogue gives to its code. The message is
// one sentence without a final period. The suggestion says what to do ("did you mean
// \"pricing\"?") and may be empty. New replaces control characters in both, because they can
// come from a file. It panics if the catalogue does not have the code.
func New(code, file string, at Range, pointer, message, suggestion string) Finding {
	e, ok := Explain(code)
	if !ok {
		panic("finding: the catalogue has no section for the code " + code)
	}
	return Finding{
		Code: code, Severity: e.Severity, File: file, Range: at,
		Pointer: pointer, Message: harmless(message), Suggestion: harmless(suggestion),
	}
}

// Sort sorts findings by file, position and code, and removes duplicates.
func Sort(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Range.Line, b.Range.Line),
			cmp.Compare(a.Range.Column, b.Range.Column),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.Code == b.Code && a.File == b.File && a.Range == b.Range && a.Message == b.Message
	})
}

// HasErrors reports whether one of the findings is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}
