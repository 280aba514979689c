package write

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/topogen/topogen/spec/finding"
)

// finding makes a finding about a file of the target.
func (t *Target) finding(code, name, message, suggestion string) *finding.Finding {
	f := finding.New(code, t.file(name), finding.Range{}, "", message, suggestion)
	return &f
}

func (t *Target) readFinding(name string, err error) *finding.Finding {
	return t.finding(finding.Unreadable, name, fmt.Sprintf("cannot read %s: %s", name, reason(err)), "make it readable: topogen reads the existing file before it writes")
}

func (t *Target) foreignFinding(name string) *finding.Finding {
	return t.finding(finding.NotOurs, name, name+" was not written by topogen and is not overwritten", "delete it if you do not need it, or write another output in "+t.Source)
}

func (t *Target) editedFinding(name string) *finding.Finding {
	return t.finding(finding.NotOurs, name, name+" was edited or damaged after topogen wrote it and is not overwritten",
		"delete it and run topogen build; an edit belongs in a file of your own")
}

func (t *Target) linkFinding(name string) *finding.Finding {
	return t.finding(finding.LeavesModule, name, name+" is a symbolic link and is not followed", "remove the link, or write another output in the topology file")
}

func (t *Target) cannotWrite(name, why, suggestion string) *finding.Finding {
	return t.finding(finding.Unwritable, name, fmt.Sprintf("cannot write %s: %s", name, why), suggestion)
}

// wrongOutput makes a finding about the key output of the topology file.
func (t *Target) wrongOutput(code, message, suggestion string) *finding.Finding {
	f := t.finding(code, t.Source, message, suggestion)
	f.Pointer = "/output"
	return f
}

// Overtaken reports whether a finding only says that a file has changed during the build.
// Then a new build may succeed.
func Overtaken(f finding.Finding) bool { return f.Code == finding.Overtaken }

// ChangedInput is the finding for an input that has changed during a build that writes
// nothing.
func ChangedInput(path string) finding.Finding {
	return *overtaken(path, filepath.Base(path), "the result may not include the change")
}

func overtaken(path, name, consequence string) *finding.Finding {
	f := finding.New(finding.Overtaken, path, finding.Range{}, "",
		fmt.Sprintf("%s changed while the build ran: %s", name, consequence), "run topogen build again")
	return &f
}

// unverified turns a finding of the verification into one about files that could not be
// verified.
func (t *Target) unverified(f finding.Finding, done, total int) *finding.Finding {
	if f.Code == finding.Unreadable {
		f.Code, f.Suggestion = finding.Unwritable, "run topogen build again"
		f.Message += fmt.Sprintf("; %d of %d files were written before", done, total)
	}
	return &f
}

// writeFinding is the finding for an error on disk. done is the number of files, of total,
// that had been renamed before.
func (t *Target) writeFinding(name string, err error, done, total int) *finding.Finding {
	why := reason(err)
	if done > 0 {
		why += fmt.Sprintf("; %d of %d files were written before", done, total)
	} else {
		why += "; nothing was written"
	}
	return t.cannotWrite(name, why, remedy(err))
}

func remedy(err error) string {
	const again = "run topogen build again"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space and " + again
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "make the folder writable and " + again
	default:
		return again
	}
}

// reason is the cause without the file name. Findings name the file themselves, and the
// error may name a temporary file.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
