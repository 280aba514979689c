package write

import (
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/topogen/topogen/spec/finding"
)

// Op is what happens to one file.
type Op string

const (
	// Unchanged files are on disk as they would be written, except for line ends.
	Unchanged Op = "unchanged"
	// Create writes a file that does not exist.
	Create Op = "create"
	// Replace overwrites a generated file.
	Replace Op = "replace"
	// Remove removes an orphan: a generated file from an earlier build.
	Remove Op = "remove"
	// Refuse changes nothing; a finding says why.
	Refuse Op = "refuse"
)

// Change is what happens to one file.
type Change struct {
	Name string // slash path relative to the topology's folder
	Op   Op

	old, new []byte // contents on disk and planned contents; nil: no file
	mode     fs.FileMode
	kept     bool
}

// Changes is the difference between a topology's outputs and the files on disk.
type Changes struct {
	target   Target
	identity string // absolute path of the folder, with links resolved
	list     []Change
	findings []finding.Finding
	applied  bool     // all renames are done
	folders  []string // folders of outputs, which may contain orphans and temporary files
}

// List returns the changes, sorted by name.
func (c *Changes) List() []Change { return slices.Clone(c.list) }

// Applied reports whether Apply has made all changes in List, even if it has reported
// findings afterwards.
func (c *Changes) Applied() bool { return c.applied }

// Check returns a TG505 for each file that differs from the planned file, sorted by name.
// It does not repeat findings of Plan.
func (c *Changes) Check() []finding.Finding {
	var findings []finding.Finding
	for _, ch := range c.list {
		var message string
		switch ch.Op {
		case Create:
			message = fmt.Sprintf("%s is missing", ch.Name)
		case Replace:
			message = fmt.Sprintf("%s does not match %s", ch.Name, c.target.Source)
		case Remove:
			message = fmt.Sprintf("%s is no longer generated from %s", ch.Name, c.target.Source)
		default:
			continue
		}
		findings = append(findings, *c.target.finding(finding.OutOfDate, ch.Name, message, "run topogen build"))
	}
	return findings
}

// Diff prints a unified diff from the files on disk to the planned files, including missing
// files, orphans and refused files.
func (c *Changes) Diff(w io.Writer) error {
	for _, ch := range c.list {
		if ch.Op == Unchanged || ch.Op == Refuse && ch.old == nil {
			continue // not comparable: a link, a folder, an invalid name
		}
		if err := writeDiff(w, c.target.label(ch.Name), ch.old, ch.new); err != nil {
			return err
		}
	}
	return nil
}

// Outputs returns the exact files on disk after a successful Apply, for a cache. Each Name is
// joined to the topology's folder.
func (c *Changes) Outputs() []File {
	var files []File
	for _, ch := range c.list {
		switch ch.Op {
		case Unchanged: // old may have different line ends than new
			files = append(files, File{Name: c.target.file(ch.Name), Body: ch.old})
		case Create, Replace:
			files = append(files, File{Name: c.target.file(ch.Name), Body: ch.new})
		}
	}
	return files
}
