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
	// Unchanged files are on disk as they would be written, line ends apart.
	Unchanged Op = "unchanged"
	// Create writes a file that is not there.
	Create Op = "create"
	// Replace writes over a file of ours.
	Replace Op = "replace"
	// Remove takes away an orphan: a file of ours that is no longer written.
	Remove Op = "remove"
	// Refuse touches nothing; a finding says why.
	Refuse Op = "refuse"
)

// Change is what happens to one file.
type Change struct {
	Name string // slash path relative to the topology's folder
	Op   Op

	old, new []byte // on disk, and what is wanted; nil where there is none
	mode     fs.FileMode
	kept     bool
}

// Changes is the difference between what a topology writes and what is on disk.
type Changes struct {
	target   Target
	identity string // absolute path of the folder, the same for every name of it
	list     []Change
	findings []finding.Finding
	applied  bool     // all renames are done
	folders  []string // where outputs stand and orphans and temporaries may
}

// List returns the files in order of their names.
func (c *Changes) List() []Change { return slices.Clone(c.list) }

// Applied reports whether Apply has changed the disk as List says, whatever it found
// afterwards.
func (c *Changes) Applied() bool { return c.applied }

// Check returns a TG505 for each file that is not what would be written, in
// order of names. What Plan has refused is not repeated.
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

// Diff prints a unified diff from what is on disk to what would be written,
// missing files, orphans and refused files included.
func (c *Changes) Diff(w io.Writer) error {
	for _, ch := range c.list {
		if ch.Op == Unchanged || ch.Op == Refuse && ch.old == nil {
			continue // nothing that can be compared: a link, a folder, a bad name
		}
		if err := writeDiff(w, c.target.label(ch.Name), ch.old, ch.new); err != nil {
			return err
		}
	}
	return nil
}

// Outputs returns what stands on disk after a successful Apply, byte for byte,
// each Name joined to the topology's folder; a cache may compare with it.
func (c *Changes) Outputs() []File {
	var files []File
	for _, ch := range c.list {
		switch ch.Op {
		case Unchanged: // possibly with other line ends than new
			files = append(files, File{Name: c.target.file(ch.Name), Body: ch.old})
		case Create, Replace:
			files = append(files, File{Name: c.target.file(ch.Name), Body: ch.new})
		}
	}
	return files
}
