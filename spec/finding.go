package spec

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
	Line, Column       int
	EndLine, EndColumn int
}

// Finding is one thing that is wrong with a topology, at its place. Printers
// (text, JSON, SARIF, GitHub) turn findings into output; nothing else does.
type Finding struct {
	Code       string // stable, "TG204"
	Severity   Severity
	File       string // as the user named it; printers make it relative
	Range      Range
	Pointer    string // JSON pointer (RFC 6901) into the topology; "" for Go files
	Message    string // one sentence, no trailing period
	Suggestion string // what to do or write instead; may be empty
}
