package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topogen/topogen/spec"
)

// formats are what --format takes.
var formats = []string{"text", "json", "sarif", "github"}

func addFormat(cmd *cobra.Command, format *string) {
	addChoice(cmd, format, "format", "how findings are printed: text to stderr, the others to stdout", formats...)
}

// excerptFileMax bounds a Go file that is read to show a line of it.
const excerptFileMax = 16 << 20

// report collects findings and prints them once, at the end.
type report struct {
	streams  Streams
	format   string
	strict   bool // warnings are errors
	lenient  bool // what the user's next edit mends in Go code is a warning
	runs     bool // the program is run next: type errors stay errors
	findings []spec.Finding
	sources  map[string][]byte // by Finding.File, for excerpts
}

const (
	// codeTypeError is a type error in Go. In a file of the user's, what it lacks
	// may be what is about to be written; one in what is generated has the topology
	// as its place.
	codeTypeError = "TG311"
	// codeKept is a handler that keeps a message pointer, a sender or a context. The
	// generated code does not depend on that.
	codeKept = "TG321"
)

func (r *report) repairable(f spec.Finding) bool {
	_, topology := r.sources[f.File]
	return (f.Code == codeTypeError || f.Code == codeKept) && !topology
}

// add takes findings over, as severe as the flags make them.
func (r *report) add(findings ...spec.Finding) {
	for _, f := range findings {
		if r.lenient && r.repairable(f) && !(r.runs && f.Code == codeTypeError) {
			f.Severity = spec.Warning
		}
		if r.strict && f.Severity == spec.Warning {
			f.Severity = spec.Error
		}
		r.findings = append(r.findings, f)
	}
}

// read reads a topology file, or reports that it cannot be read.
func (r *report) read(name string) (source, bool) {
	src, finding := readTopology(name)
	if finding != nil {
		r.add(*finding)
		return src, false
	}
	if r.sources == nil {
		r.sources = make(map[string][]byte)
	}
	r.sources[src.path] = src.text
	return src, true
}

func (r *report) failed() bool { return spec.HasErrors(r.findings) }

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
	findings := foremost(spec.Sort(slices.Clone(r.findings)))
	sources := make(map[string][]byte)
	for i := range findings {
		f := &findings[i]
		text := r.excerptsOf(f)
		f.File = onDisk(f.File)
		if text != nil {
			sources[f.File] = text
		}
	}
	switch r.format {
	case "json":
		return spec.WriteJSON(r.streams.Out, findings, "")
	case "sarif":
		return spec.WriteSARIF(r.streams.Out, findings, "")
	case "github":
		return spec.WriteGitHub(r.streams.Out, findings, "")
	default:
		return spec.WriteText(r.streams.Err, findings, sources, r.streams.color())
	}
}

// printedMax is how many findings are printed; more help nobody.
const printedMax = 1000

// foremost leaves out what is too much, warnings before errors, and says so.
func foremost(findings []spec.Finding) []spec.Finding {
	left := len(findings) - printedMax
	if left <= 0 {
		return findings
	}
	slices.SortStableFunc(findings, func(a, b spec.Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) }) // "error" first
	last := findings[printedMax]
	findings = spec.Sort(findings[:printedMax])
	more := spec.NewFinding("TG106", findings[printedMax-1].File, spec.Range{}, "", fmt.Sprintf("%d more findings are not shown", left), "repair these first")
	more.Severity = last.Severity
	return append(findings, more)
}

// excerptsOf returns the text of the file that a finding is in, where the
// finding has a line and people will read it.
func (r *report) excerptsOf(f *spec.Finding) []byte {
	if r.format != "text" || f.Range.Line < 1 {
		return nil
	}
	if text, ok := r.sources[f.File]; ok {
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
	if r.sources == nil {
		r.sources = make(map[string][]byte)
	}
	r.sources[f.File] = text
	return text
}
