// Package finding holds what topogen reports: findings with their place, the
// catalogue that explains each code ([Codes], [Explain]), and the printers for
// people, editors and CI. A code never gets another meaning.
package finding

import (
	"cmp"
	"slices"
)

// Severity says whether a finding stops the build.
type Severity string

const (
	// Error findings make build and check fail.
	Error Severity = "error"
	// Warning findings (TG4xx) change nothing unless --strict.
	Warning Severity = "warning"
)

// Range is a place in a file: lines and columns are 1-based, columns count
// characters (runes), the end is exclusive. The zero Range is "the whole file".
type Range struct {
	Line      int `json:"line"`
	Column    int `json:"column"`
	EndLine   int `json:"end_line"`
	EndColumn int `json:"end_column"`
}

// Finding is one thing that is wrong with a topology, at its place. Printers
// (text, JSON, SARIF, GitHub) turn findings into output; nothing else does. Tools
// read the names in the tags: one is never changed.
type Finding struct {
	Code       string   `json:"code"` // stable, "TG204"
	Severity   Severity `json:"severity"`
	File       string   `json:"file"` // as the user named it; printers make it relative
	Range               // its keys stand between those of the finding
	Pointer    string   `json:"pointer"`    // JSON pointer (RFC 6901) into the topology; "" for Go files
	Message    string   `json:"message"`    // one sentence, no trailing period
	Suggestion string   `json:"suggestion"` // what to do or write instead; may be empty
}

// New returns a finding with the severity that the catalogue gives its
// code. The message is one sentence without a period at its end; the suggestion
// is what to do instead ("did you mean \"pricing\"?") and may be empty. Control
// characters in both, which can only be a file's, are replaced.
// It panics on a code that the catalogue does not have.
func New(code, file string, at Range, pointer, message, suggestion string) Finding {
	e, ok := Explain(code)
	if !ok {
		panic("finding: no finding has the code " + code)
	}
	return Finding{
		Code: code, Severity: e.Severity, File: file, Range: at,
		Pointer: pointer, Message: harmless(message), Suggestion: harmless(suggestion),
	}
}

// Sort orders findings by file, position and code, and removes repeated ones.
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

// HasErrors reports whether any of the findings is an error.
func HasErrors(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
}
