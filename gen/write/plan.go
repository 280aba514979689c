package write

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/spec/finding"
)

// Plan compares the files of a target with the disk and changes nothing. The findings
// (TG501 to TG504) say which files are refused. Changes is never nil: it can be shown as a
// diff even if a file is refused, but then Apply writes nothing.
//
// Plan panics if a file is not sealed for its place, which is a bug of the caller.
func Plan(t Target) (*Changes, []finding.Finding) { return plan(openRoot, t) }

func plan(open func(dir string) (disk, error), t Target) (*Changes, []finding.Finding) {
	c := &Changes{target: t, identity: identity(t.Dir)}
	d, err := open(t.Dir)
	if err != nil {
		f := t.readFinding(".", err)
		f.Message = fmt.Sprintf("cannot open the folder of %s: %s", t.Source, reason(err))
		c.findings = append(c.findings, *f)
		return c, c.findings
	}
	defer d.Close()
	c.plan(d)
	return c, slices.Clone(c.findings)
}

// plan compares the target with a disk.
func (c *Changes) plan(d disk) {
	t := &c.target
	c.folders = []string{"."}
	for _, file := range t.Files {
		ch := Change{Name: file.Name}
		f := c.planFile(d, file, &ch)
		c.add(ch, f)
	}
	for _, name := range t.Keep {
		if t.nameFinding(name, false) == nil && t.folderFinding(d, name) == nil {
			c.addFolder(name)
		}
	}
	for _, folder := range c.folders {
		c.planOrphans(d, folder)
	}
	slices.SortStableFunc(c.list, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
}

// identity returns a unique path for a folder that may have several paths.
func identity(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

func (c *Changes) addFolder(name string) {
	if folder := path.Dir(name); !slices.Contains(c.folders, folder) {
		c.folders = append(c.folders, folder)
	}
}

// add adds a change, or a refused change with its finding.
func (c *Changes) add(ch Change, f *finding.Finding) {
	if f != nil {
		ch.Op = Refuse
		c.findings = append(c.findings, *f)
	}
	c.list = append(c.list, ch)
}

// planFile decides the operation for a file. A finding says why the file is refused.
func (c *Changes) planFile(d disk, file File, ch *Change) *finding.Finding {
	t := &c.target
	if f := t.nameFinding(file.Name, file.Kept); f != nil {
		return f
	}
	ch.new, ch.kept = file.Body, file.Kept
	if !file.Kept {
		mustBeSealed(t, file)
	}
	// Names that differ only in case are the same file on some disks.
	if slices.ContainsFunc(c.list, func(other Change) bool { return strings.EqualFold(other.Name, file.Name) }) {
		return t.cannotWrite(file.Name, "two outputs have this name", "write another output in the topology file")
	}
	if len(file.Body) > FileBytesMax {
		return t.cannotWrite(file.Name, fmt.Sprintf("its text would have more than %d bytes", FileBytesMax), "split the topology")
	}
	existing, f := t.look(d, file.Name)
	ch.old, ch.mode = existing.content, existing.mode
	if f != nil {
		return f
	}
	c.addFolder(file.Name)
	switch {
	case !existing.present:
		ch.Op = Create
		return t.caseVariant(d, file.Name)
	case same(existing.content, file.Body):
		ch.Op = Unchanged
		return nil
	}
	ch.Op = Replace
	if file.Kept {
		return nil
	}
	return t.checkReplaceable(d, file.Name, existing.content)
}

func mustBeSealed(t *Target, file File) {
	h, ok := header.Read(file.Body)
	if want := header.SourceOf(file.Name, t.Source); !ok || h.Source != want || header.Inspect(file.Body) != header.Ours {
		panic(fmt.Sprintf("write: %s is not sealed with source %q", file.Name, want))
	}
}

// found describes the file under an output's name.
type found struct {
	present bool
	content []byte
	mode    fs.FileMode
}

// look reads the file under an output's name, without following links.
func (t *Target) look(d disk, name string) (found, *finding.Finding) {
	if f := t.folderFinding(d, name); f != nil {
		return found{}, f
	}
	info, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, nil
	case err != nil:
		return found{}, t.readFinding(name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return found{}, t.linkFinding(name)
	case !info.Mode().IsRegular(): // opening a named pipe could block forever
		return found{}, t.cannotWrite(name, "it is not a regular file", "move it away, or write another output in the topology file")
	case info.Size() > FileBytesMax:
		return found{}, t.foreignFinding(name)
	}
	content, err := d.Read(name, FileBytesMax)
	if errors.Is(err, fs.ErrNotExist) { // a concurrent build has just removed it
		return found{}, nil
	}
	if err != nil {
		return found{}, t.readFinding(name, err)
	}
	if content == nil {
		content = []byte{} // nil would mean: no file
	}
	return found{present: true, content: content, mode: info.Mode().Perm()}, nil
}

// checkReplaceable returns a finding if an output of this target must not replace content.
func (t *Target) checkReplaceable(d disk, name string, content []byte) *finding.Finding {
	switch header.Inspect(content) {
	case header.Foreign:
		return t.foreignFinding(name)
	case header.EditedByHand:
		return t.editedFinding(name)
	}
	h, _ := header.Read(content)
	other := path.Join(path.Dir(name), h.Source)
	if other == t.Source || !filepath.IsLocal(filepath.FromSlash(other)) {
		return nil
	}
	info, err := d.Lstat(other)
	if err != nil || !info.Mode().IsRegular() {
		return nil // the topology was renamed
	}
	if own, err := d.Lstat(t.Source); err == nil && os.SameFile(info, own) {
		return nil // renamed in case only, on a disk that ignores case
	}
	return t.cannotWrite(name, fmt.Sprintf("it is generated from %s", other), "move one of the two topologies into a folder of its own")
}

// caseVariant finds a file whose name differs from an output's name only in case: on some
// disks one would replace the other. Orphans of this target do not count.
func (t *Target) caseVariant(d disk, name string) *finding.Finding {
	names, err := d.List(path.Dir(name))
	if err != nil {
		return nil // planOrphans reports it
	}
	for _, base := range names {
		other := path.Join(path.Dir(name), base)
		if other == name || !strings.EqualFold(other, name) {
			continue
		}
		if isRegular(d, other) { // reading a pipe could block
			head, _ := d.Read(other, header.BytesMax)
			if h, ok := header.Read(head); ok && h.Source == header.SourceOf(other, t.Source) {
				continue
			}
		}
		return t.cannotWrite(name, fmt.Sprintf("its name differs from that of %s only by case, and some file systems keep only one of the two", other), "write another output in the topology file")
	}
	return nil
}

// planOrphans finds files that an earlier build generated from this source.
func (c *Changes) planOrphans(d disk, folder string) {
	names, err := d.List(folder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.findings = append(c.findings, *c.target.readFinding(folder, err))
		}
		return
	}
	for _, base := range names {
		name := path.Join(folder, base)
		if path.Ext(name) != ".go" || !isRegular(d, name) || c.wanted(d, name) {
			continue
		}
		head, err := d.Read(name, header.BytesMax)
		if err != nil {
			continue // probably a person's file, which need not be readable
		}
		h, ok := header.Read(head)
		if !ok || h.Source != header.SourceOf(name, c.target.Source) {
			continue
		}
		c.planOrphan(d, name)
	}
}

func (c *Changes) planOrphan(d disk, name string) {
	existing, f := c.target.look(d, name)
	if f == nil && !existing.present {
		return
	}
	if f == nil && header.Inspect(existing.content) != header.Ours {
		f = c.target.editedFinding(name)
		f.Message = fmt.Sprintf("%s is no longer generated from %s, but it was edited or damaged and is not removed", name, c.target.Source)
		f.Suggestion = "move the edit into a file of your own and delete this one"
	}
	c.add(Change{Name: name, Op: Remove, old: existing.content}, f)
}

// wanted reports whether a file on disk is a file of the target. On a disk that ignores case,
// the names may differ in case.
func (c *Changes) wanted(d disk, name string) bool {
	same := func(other string) bool {
		if other == name {
			return true
		}
		if !strings.EqualFold(other, name) {
			return false
		}
		a, errA := d.Lstat(other)
		b, errB := d.Lstat(name)
		return errA == nil && errB == nil && os.SameFile(a, b)
	}
	return slices.ContainsFunc(c.target.Files, func(f File) bool { return same(f.Name) }) ||
		slices.ContainsFunc(c.target.Keep, same)
}

// same compares contents on disk with planned contents, whose line ends are "\n".
func same(onDisk, wanted []byte) bool {
	return bytes.Equal(onDisk, wanted) || bytes.Equal(header.UnixLines(onDisk), wanted)
}
