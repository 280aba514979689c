package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/topogen/topogen/spec/finding"
)

// defaultTopology is what commands read where no file is named.
const defaultTopology = "topology.yml"

// readMax is one byte more than a topology may have: spec refuses it then, and
// says by how much.
const readMax = 4<<20 + 1

// source is a topology file, read.
type source struct {
	path    string // absolute
	text    []byte
	folders []string // absolute: outputs may be in them; the last one is that of the outputs now
}

func (s source) dir() string  { return filepath.Dir(s.path) }
func (s source) base() string { return filepath.Base(s.path) }

// readTopology reads the topology file that a person calls name. Only regular
// files are opened: a pipe or a device would be waited for.
func readTopology(name string) (source, *finding.Finding) {
	path, err := filepath.Abs(name)
	if err != nil {
		return source{}, unreadable(name, name, err)
	}
	info, err := os.Stat(path)
	if folder := name == defaultTopology && errors.Is(err, fs.ErrNotExist); folder || err == nil && info.IsDir() {
		dir := path
		if folder {
			dir = filepath.Dir(path)
		}
		file, missing := topologyIn(dir)
		if missing == nil {
			return readTopology(file)
		}
		if !folder {
			return source{}, unreadable(path, name, missing)
		}
	}
	switch {
	case err != nil:
		return source{}, unreadable(path, name, err)
	case !info.Mode().IsRegular():
		return source{}, unreadable(path, name, errors.New("it is not a regular file"))
	}
	text, err := readStart(path, min(readMax, info.Size())) // the kernel has files of no size, which may be waited for
	if err != nil {
		return source{}, unreadable(path, name, err)
	}
	return source{path: path, text: text, folders: foldersOf(path, text)}, nil
}

// readStart reads at most the first most bytes of a file; none need no file.
func readStart(path string, most int64) ([]byte, error) {
	if most == 0 {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

func unreadable(path, name string, err error) *finding.Finding {
	suggestion := ""
	if errors.Is(err, fs.ErrNotExist) {
		suggestion = "name an existing file, or begin with topogen init DIR"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // it names the file, as the finding does
	}
	return &finding.Finding{
		Code: finding.Unreadable, Severity: finding.Error, File: path,
		Message: fmt.Sprintf("cannot read %s: %v", name, err), Suggestion: suggestion,
	}
}

// shown is onDisk for words: quoted where a terminal would obey what is in it.
func shown(path string) string {
	if path = onDisk(path); !printable(path) {
		return strconv.Quote(path)
	}
	return path
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// onDisk returns path as a person in the working directory calls it.
func onDisk(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(dir, path); err == nil {
		return relative
	}
	return path
}
