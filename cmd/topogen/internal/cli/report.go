package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/topogen/topogen/spec/finding"
)

// formats are the values of --format.
var formats = []string{"text", "json", "sarif", "github"}

func addFormat(cmd *cobra.Command, format *string) {
	addChoice(cmd, format, "format", "format of findings; text goes to stderr, other formats to stdout", formats...)
}

// excerptFileMax limits the size of a Go file that is read to print one of its lines.
const excerptFileMax = 16 << 20

// report collects findings and prints them once, at the end.
type report struct {
	streams    Streams
	format     string
	strict     bool // warnings are errors
	lenient    bool // finding.OutlivesCall is a warning
	findings   []finding.Finding
	topologies map[string][]byte // text by Finding.File
}

// add adds findings, with the severity that the flags give them.
func (r *report) add(findings ...finding.Finding) {
	for _, f := range findings {
		f.Severity = r.severity(f)
		r.findings = append(r.findings, f)
	}
}

// severity returns the severity of a finding under the flags.
func (r *report) severity(f finding.Finding) finding.Severity {
	switch {
	case r.strict:
		return finding.Error
	case r.lenient && f.Code == finding.OutlivesCall:
		return finding.Warning
	}
	return f.Severity
}

// read reads a topology file, or reports that it cannot be read.
func (r *report) read(name string) (source, bool) {
	src, problem := readTopology(name)
	if problem != nil {
		r.add(*problem)
		return src, false
	}
	if r.topologies == nil {
		r.topologies = make(map[string][]byte)
	}
	r.topologies[src.path] = src.text
	return src, true
}

func (r *report) failed() bool { return finding.HasErrors(r.findings) }

// refuses reports whether the findings allow only the ports to be written. A type error
// in a file of the user does not count, because the new wiring may repair it. A type
// error in generated code is reported at the topology, and counts.
func (r *report) refuses(findings []finding.Finding) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool {
		_, topology := r.topologies[f.File]
		return r.severity(f) == finding.Error && (f.Code != finding.GoType || topology)
	})
}

// finish prints the findings, and returns errFindings if there are errors.
func (r *report) finish() error {
	if err := r.print(); err != nil {
		return err
	}
	if r.failed() {
		return errFindings
	}
	return nil
}

func (r *report) print() error {
	findings := limited(finding.Sort(slices.Clone(r.findings)))
	sources := make(map[string][]byte)
	for i := range findings {
		f := &findings[i]
		name := onDisk(f.File)
		if _, ok := sources[name]; !ok {
			if text := r.excerptsOf(f); text != nil {
				sources[name] = text
			}
		}
		f.File = name
	}
	switch r.format {
	case "json":
		return finding.WriteJSON(r.streams.Out, findings, "")
	case "sarif":
		return finding.WriteSARIF(r.streams.Out, findings, "")
	case "github":
		return finding.WriteGitHub(r.streams.Out, findings, "")
	default:
		return finding.WriteText(r.streams.Err, findings, sources, r.streams.color())
	}
}

// printedMax limits the findings that are printed. More findings do not help a reader.
const printedMax = 1000

// limited drops findings above printedMax, warnings before errors, and adds a finding with
// the number of dropped findings.
func limited(findings []finding.Finding) []finding.Finding {
	left := len(findings) - printedMax
	if left <= 0 {
		return findings
	}
	slices.SortStableFunc(findings, func(a, b finding.Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) }) // "error" first
	last := findings[printedMax]
	findings = finding.Sort(findings[:printedMax])
	more := finding.New(finding.Limit, findings[printedMax-1].File, finding.Range{}, "", fmt.Sprintf("%d more findings are not shown", left), "fix these first")
	more.Severity = last.Severity
	return append(findings, more)
}

// excerptsOf returns the text of the file of a finding. It returns nil if the finding
// has no line, or is not printed as text.
func (r *report) excerptsOf(f *finding.Finding) []byte {
	if r.format != "text" || f.Range.Line < 1 {
		return nil
	}
	if text, ok := r.topologies[f.File]; ok {
		return text
	}
	info, err := os.Stat(f.File)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := readStart(f.File, excerptFileMax)
	if err != nil {
		return nil
	}
	return text
}
