package bind

import (
	"bytes"
	"fmt"
	"go/token"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// reporter collects the findings of one topology and finds their positions.
type reporter struct {
	topology *spec.Topology
	dir      string // absolute folder of the topology file
	fset     *token.FileSet
	texts    map[string][]byte // contents of Go files; read when needed
	findings []finding.Finding
}

// at reports a finding at a place in the topology.
func (r *reporter) at(code string, at spec.Text, suggestion, format string, args ...any) {
	r.add(finding.New(code, r.topology.File, at.At, at.Pointer, fmt.Sprintf(format, args...), suggestion))
}

// atGo reports a finding about a name in Go.
func (r *reporter) atGo(code string, pos token.Pos, name, suggestion, format string, args ...any) {
	f := r.goFinding(code, r.fset.PositionFor(pos, false), fmt.Sprintf(format, args...))
	f.Range.EndColumn = f.Range.Column + utf8.RuneCountInString(name)
	f.Suggestion = suggestion
	r.add(f)
}

func (r *reporter) add(f finding.Finding) { r.findings = append(r.findings, f) }

// goFinding is an error at a position in Go, with a range of one character.
func (r *reporter) goFinding(code string, at token.Position, message string) finding.Finding {
	column := at.Column
	if before := r.before(at); before != nil {
		column = utf8.RuneCount(before) + 1 // Go counts bytes
	}
	place := finding.Range{Line: at.Line, Column: column, EndLine: at.Line, EndColumn: column + 1}
	return finding.New(code, r.display(at.Filename), place, "", strings.TrimSuffix(r.local(message), "."), "")
}

// local makes file names in a message relative to the folder of the topology.
func (r *reporter) local(message string) string {
	return strings.ReplaceAll(message, r.dir+string(filepath.Separator), "")
}

// before returns the part of the line before a position, or nil if the file has no such
// position.
func (r *reporter) before(at token.Position) []byte {
	text, ok := r.texts[at.Filename]
	if !ok {
		text, _ = readRegular(at.Filename) // if the text is missing, the column counts bytes
		r.texts[at.Filename] = text
	}
	start := at.Offset - (at.Column - 1)
	if 0 < start && start <= at.Offset && at.Offset <= len(text) && text[start-1] == '\n' {
		return text[start:at.Offset]
	}
	found := true
	for n := 1; n < at.Line && found; n++ { // the go command and export data give no offsets
		_, text, found = bytes.Cut(text, []byte("\n"))
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if !found || at.Column < 1 || at.Column > len(line)+1 {
		return nil
	}
	return line[:at.Column-1]
}

// display is the path of a Go file for users: relative to the same folder as the path of
// the topology file, if the Go file is below that folder.
func (r *reporter) display(file string) string {
	rel, err := filepath.Rel(r.dir, file)
	if err != nil || strings.HasPrefix(rel, "..") {
		return file
	}
	return filepath.Join(filepath.Dir(r.topology.File), rel)
}
