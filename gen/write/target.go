package write

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// FileBytesMax bounds the size of a file that is read or written. The output of ten thousand
// processors is much smaller, and two such files fit into memory.
const FileBytesMax = 64 << 20

// File is a generated file in memory.
type File struct {
	Name string // slash path relative to the topology's folder, inside it
	Body []byte // sealed content
	// Kept says that the file is not sealed: its contents must survive builds, users merge
	// it, and it is never an orphan.
	Kept bool
}

// Target has the outputs of one topology.
type Target struct {
	Dir    string // the topology's folder, as the user named it
	Source string // base name of the topology file
	Files  []File // outputs, each sealed with header.SourceOf(Name, Source)

	// Keep names outputs that are not written this time but are not orphans: the wiring, if
	// only the ports can be written.
	Keep []string

	// Display is the name of Dir in diffs, a slash path; "" means Dir.
	Display string
}

// file returns the name of a file of the target in findings.
func (t *Target) file(name string) string {
	return filepath.Join(t.Dir, filepath.FromSlash(name))
}

// label returns the name of a file of the target in diffs.
func (t *Target) label(name string) string {
	dir := t.Display
	if dir == "" {
		dir = filepath.ToSlash(t.Dir)
	}
	return path.Join(dir, name)
}

// nameFinding checks an output's name without access to the disk.
func (t *Target) nameFinding(name string, kept bool) *finding.Finding {
	switch {
	case name == "", strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }),
		path.Clean(name) != name, !filepath.IsLocal(filepath.FromSlash(name)):
		return t.wrongOutput(finding.LeavesModule, fmt.Sprintf("output must be in the folder of %s or below it, got %q", t.Source, name), "write a path with forward slashes and without ..")
	case path.Ext(name) != ".go" && !kept:
		return t.wrongOutput(finding.Unwritable, fmt.Sprintf("output must be a Go file, got %q", name), "write a name that ends with .go")
	}
	return nil
}

// folderFinding checks the folders on the path of an output. os.Root follows a symbolic link
// that stays inside the root. We refuse it, because the file would have two names and be an
// orphan under one of them.
func (t *Target) folderFinding(d disk, name string) *finding.Finding {
	for i, r := range name {
		if r != '/' {
			continue
		}
		folder := name[:i]
		info, err := d.Lstat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // Apply makes it
		case err != nil:
			return t.readFinding(folder, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return t.linkFinding(folder)
		case !info.IsDir():
			return t.cannotWrite(name, fmt.Sprintf("%s is not a folder", folder), "move it away, or write another output in the topology file")
		}
		if _, err := d.Lstat(folder + "/go.mod"); err == nil {
			return t.wrongOutput(finding.LeavesModule, fmt.Sprintf("output must be in the module of the topology, got %q: %s has a go.mod of its own", name, folder), "move the topology into that module, or name a file outside it")
		}
	}
	return nil
}
