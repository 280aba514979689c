package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/spec/finding"
)

// Apply writes the changes of one or several topologies to disk. It writes nothing if
// Plan has refused a change of any of them, or if an error occurs before all files are
// staged. Without findings, all files are on disk as planned. After the first rename,
// Apply ignores the end of the context.
//
// changed returns the name of an input that has changed since the new files were made, or
// "". Apply calls it before the first rename and after the last one, unless it is nil.
//
// If an input has changed, or if a written file is no longer on disk, all findings are
// [Overtaken]. Then the caller may start the build again.
func Apply(ctx context.Context, changed func() string, changes ...*Changes) []finding.Finding {
	return apply(ctx, openRoot, thisProcess(), changed, changes)
}

// batch is one call of Apply. A job is one file in it.
type batch struct {
	owner owner
	input func() string // returns an input that has changed
	jobs  []*job
	disks []disk
	made  []madeFolder
	done  int // number of jobs that are renamed
}

type job struct {
	changes *Changes
	change  Change
	disk    disk
	temp    string // name of the staged file; "" if there is nothing to rename
}

type madeFolder struct {
	disk disk
	name string
}

func apply(ctx context.Context, open func(dir string) (disk, error), who owner, changed func() string, sets []*Changes) []finding.Finding {
	if findings := refusals(sets); len(findings) > 0 {
		return findings
	}
	b := &batch{owner: who, input: changed}
	defer b.close()
	for _, step := range []func() *finding.Finding{
		func() *finding.Finding { return b.open(open, sets) },
		func() *finding.Finding { return b.stage(ctx) },
		func() *finding.Finding { return b.changedInput("nothing was written") },
		func() *finding.Finding { return b.commit(sets) },
		func() *finding.Finding { return b.verify(sets) },
	} {
		if f := step(); f != nil {
			b.undo()
			return []finding.Finding{*f}
		}
	}
	swept := make(map[string]bool)
	for i, c := range sets {
		for _, folder := range c.folders {
			if at := path.Join(c.identity, folder); !swept[at] {
				swept[at] = true
				sweep(b.disks[i], folder, who)
			}
		}
	}
	return nil
}

// refusals collects the changes that Plan has refused, and outputs of two topologies.
func refusals(sets []*Changes) []finding.Finding {
	var findings []finding.Finding
	type place struct{ dir, name string }
	writers := map[place]*Changes{}
	for _, c := range sets {
		findings = append(findings, c.findings...)
		for _, ch := range c.list {
			if ch.new == nil {
				continue
			}
			at := place{c.identity, strings.ToLower(ch.Name)}
			first, taken := writers[at]
			switch {
			case !taken:
				writers[at] = c
			case first.target.Source != c.target.Source: // the same file given twice is harmless
				findings = append(findings, *c.target.cannotWrite(ch.Name,
					fmt.Sprintf("%s writes it too", first.target.Source), "move one of the two topologies into a folder of its own"))
			}
		}
	}
	return findings
}

func (b *batch) open(open func(dir string) (disk, error), sets []*Changes) *finding.Finding {
	for _, c := range sets {
		d, err := open(c.target.Dir)
		if err != nil {
			return c.target.writeFinding(".", err, 0, 0)
		}
		b.disks = append(b.disks, d)
		for _, ch := range c.list {
			if ch.Op != Unchanged {
				b.jobs = append(b.jobs, &job{changes: c, change: ch, disk: d})
			}
		}
	}
	return nil
}

// stage writes every new file under a temporary name and then checks the files that will be
// replaced once more, because an editor may have saved one since Plan.
func (b *batch) stage(ctx context.Context) *finding.Finding {
	for _, j := range b.jobs {
		if err := ctx.Err(); err != nil {
			return j.fail(err, 0, len(b.jobs))
		}
		if j.change.Op == Remove {
			continue
		}
		if err := b.stageOne(j); err != nil {
			return j.fail(err, 0, len(b.jobs))
		}
	}
	for _, j := range b.jobs {
		if f := j.look(); f != nil {
			return f
		}
	}
	if err := ctx.Err(); err != nil && len(b.jobs) > 0 {
		return b.jobs[0].fail(err, 0, len(b.jobs))
	}
	return nil
}

func (b *batch) stageOne(j *job) error {
	if err := b.makeFolders(j.disk, path.Dir(j.change.Name)); err != nil {
		return err
	}
	temp := b.owner.temp(j.change.Name)
	f, err := j.disk.Create(temp, 0o644)
	if err != nil {
		return err
	}
	j.temp = temp // from here on undo removes it
	return errors.Join(j.fill(f), f.Close())
}

// fill writes and syncs. Without the sync a power failure could leave an empty file under
// the new name.
func (j *job) fill(f handle) error {
	if _, err := f.Write(j.change.new); err != nil {
		return err
	}
	if j.change.Op == Replace {
		if err := f.Chmod(j.change.mode); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (b *batch) makeFolders(d disk, folder string) error {
	if folder == "." {
		return nil
	}
	if _, err := d.Lstat(folder); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.makeFolders(d, path.Dir(folder)); err != nil {
		return err
	}
	err := d.Mkdir(folder)
	if errors.Is(err, fs.ErrExist) {
		return nil // a concurrent build has already written it
	}
	if err == nil {
		b.made = append(b.made, madeFolder{d, folder})
	}
	return err
}

// look checks that this job does not overwrite a person's work.
func (j *job) look() *finding.Finding {
	t := &j.changes.target
	existing, f := t.look(j.disk, j.change.Name)
	if f != nil || !existing.present {
		return f
	}
	if j.change.kept {
		if !bytes.Equal(existing.content, j.change.old) {
			return overtaken(t.file(j.change.Name), j.change.Name, "nothing was written")
		}
		return nil
	}
	if f := t.checkReplaceable(j.disk, j.change.Name, existing.content); f != nil {
		return f
	}
	if h, _ := header.Read(existing.content); j.change.Op == Remove && h.Source != header.SourceOf(j.change.Name, t.Source) {
		return t.foreignFinding(j.change.Name)
	}
	return nil
}

// commit renames all files, then removes orphans. After the first rename it stops only at
// an error. The next build completes the work, because Plan compares with the disk.
func (b *batch) commit(sets []*Changes) *finding.Finding {
	for _, j := range b.jobs {
		if j.temp == "" {
			continue
		}
		if err := j.disk.Rename(j.temp, j.change.Name); err != nil {
			return j.fail(err, b.done, len(b.jobs))
		}
		j.temp = ""
		b.made = nil // the folders are in use
		b.done++
	}
	for _, j := range b.jobs {
		if j.change.Op != Remove {
			continue
		}
		if err := j.disk.Remove(j.change.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return j.fail(err, b.done, len(b.jobs))
		}
		b.done++
	}
	b.syncFolders()
	for _, c := range sets {
		c.applied = true
	}
	return nil
}

// verify plans again after the last rename, to check that the disk is as planned. Two
// concurrent builds rename whole files in any order, so the ports of one build may be on
// disk with the wiring of the other. And a build may have read an input before its last
// change, but rename its files after a build that has read the change. In both cases the
// build that renames last reports it.
func (b *batch) verify(sets []*Changes) *finding.Finding {
	for i, c := range sets {
		again := &Changes{target: c.target, identity: c.identity}
		again.plan(b.disks[i])
		if len(again.findings) > 0 {
			return c.target.unverified(again.findings[0], b.done, len(b.jobs))
		}
		for _, ch := range again.list {
			if ch.Op != Unchanged {
				return overtaken(c.target.file(ch.Name), ch.Name, "the generated files may not match each other")
			}
		}
	}
	return b.changedInput("the generated files do not include the change")
}

// changedInput is the finding for an input that has changed.
func (b *batch) changedInput(consequence string) *finding.Finding {
	if b.input == nil {
		return nil
	}
	path := b.input()
	if path == "" {
		return nil
	}
	return overtaken(path, filepath.Base(path), consequence)
}

// syncFolders makes the renames durable. It ignores errors, because not every system can
// sync a folder, and because the next build repeats a rename that a power failure undoes.
func (b *batch) syncFolders() {
	type place struct {
		disk   disk
		folder string
	}
	synced := map[place]bool{}
	for _, j := range b.jobs {
		at := place{j.disk, path.Dir(j.change.Name)}
		if !synced[at] {
			synced[at] = true
			_ = j.disk.Sync(at.folder)
		}
	}
}

// undo removes the files that were staged but not renamed, as far as possible. sweep removes
// the rest.
func (b *batch) undo() {
	for _, j := range b.jobs {
		if j.temp != "" {
			_ = j.disk.Remove(j.temp)
		}
	}
	for i := len(b.made) - 1; i >= 0; i-- {
		_ = b.made[i].disk.Remove(b.made[i].name)
	}
}

func (b *batch) close() {
	for _, d := range b.disks {
		_ = d.Close()
	}
}

func (j *job) fail(err error, done, total int) *finding.Finding {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return j.changes.target.cannotWrite(j.change.Name, "the build was interrupted; nothing was written", "run topogen build again")
	}
	return j.changes.target.writeFinding(j.change.Name, err, done, total)
}
