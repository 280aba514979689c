package finding

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// GitHub ends a command at a line break and a property at a comma or a colon.
var (
	githubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// WriteGitHub writes findings as workflow commands. GitHub shows them at their lines. Files are
// relative to dir.
func WriteGitHub(w io.Writer, findings []Finding, dir string) error {
	out := bufio.NewWriter(w)
	for _, f := range findings {
		fmt.Fprintf(out, "::%s file=%s", f.Severity, githubProperty.Replace(harmless(RelativePath(dir, f.File))))
		if r := f.Range; r.Line > 0 {
			fmt.Fprintf(out, ",line=%d", r.Line)
			if r.EndLine > r.Line {
				fmt.Fprintf(out, ",endLine=%d", r.EndLine) // GitHub takes columns within one line only
			} else {
				fmt.Fprintf(out, ",col=%d,endColumn=%d", r.Column, r.EndColumn)
			}
		}
		fmt.Fprintf(out, ",title=%s::%s\n", githubProperty.Replace(f.Code), githubText.Replace(harmless(f.sentence())))
	}
	return out.Flush()
}
