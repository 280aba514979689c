package finding

import (
	"io"
	"net/url"
	"slices"
	"strings"
)

// These types are the parts of SARIF 2.1.0 that findings need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
		FullDescription  sarifText `json:"fullDescription"`
		Help             sarifText `json:"help"`
		Default          sarifRank `json:"defaultConfiguration"`
	}
	sarifRank struct {
		Level Severity `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     Severity        `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"`
	}
)

// WriteSARIF writes findings as a SARIF 2.1.0 log for code hosts and editors. Files are relative
// to dir.
func WriteSARIF(w io.Writer, findings []Finding, dir string) error {
	rules := []sarifRule{}
	indices := map[string]int{}
	var codes []string
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	for i, code := range slices.Compact(codes) {
		e, _ := Explain(code)
		indices[code] = i
		rules = append(rules, sarifRule{
			ID: code, ShortDescription: sarifText{e.Title}, FullDescription: sarifText{e.Reason},
			Help: sarifText{e.String()}, Default: sarifRank{e.Severity},
		})
	}
	results := make([]sarifResult, len(findings))
	for i, f := range findings {
		results[i] = sarifResult{
			RuleID: f.Code, RuleIndex: indices[f.Code], Level: f.Severity, Message: sarifText{f.sentence()},
			Locations: []sarifLocation{{sarifPhysical{Artifact: sarifArtifact{fileURI(RelativePath(dir, f.File))}, Region: f.Range.sarif()}}},
		}
	}
	return writeJSON(w, sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0",
		Runs: []sarifRun{{
			Tool:       sarifTool{sarifDriver{Name: "topogen", InformationURI: "https://github.com/topogen/topogen", Rules: rules}},
			ColumnKind: "unicodeCodePoints",
			Results:    results,
		}},
	})
}

// sarif returns the region of a range, or nil for the whole file.
func (r Range) sarif() *sarifRegion {
	if r.Line < 1 {
		return nil
	}
	return &sarifRegion{StartLine: r.Line, StartColumn: max(r.Column, 1), EndLine: max(r.EndLine, r.Line), EndColumn: max(r.EndColumn, 1)}
}

// fileURI escapes a path with slashes. A relative path stays relative.
func fileURI(path string) string {
	u := url.URL{Path: path}
	if strings.HasPrefix(path, "/") {
		u.Scheme = "file"
	}
	return u.String()
}
