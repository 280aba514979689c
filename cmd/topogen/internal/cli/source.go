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

// defaultTopology is the file that commands read by default.
const defaultTopology = "topology.yml"

// readMax is one byte above the limit of a topology file, so that spec reports a larger
// file.
const readMax = 4<<20 + 1

// source is the content of a topology file.
type source struct {
	path    string // absolute
	text    []byte
	folders []string // absolute; possible folders of the output, the last one is the current one
}

func (s source) dir() string  { return filepath.Dir(s.path) }
func (s source) base() string { return filepath.Base(s.path) }

// readTopology reads a topology file. It opens only regular files, because opening a
// pipe or a device could block.
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
	text, err := readStart(path, min(readMax, info.Size())) // a file of the kernel has size 0, and reading it could block
	if err != nil {
		return source{}, unreadable(path, name, err)
	}
	return source{path: path, text: text, folders: foldersOf(path, text)}, nil
}

// readStart reads at most the first most bytes of a file. With 0 it opens no file.
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
		suggestion = "name an existing file, or create a topology with topogen init DIR"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // without the file name, which the finding has
	}
	return &finding.Finding{
		Code: finding.Unreadable, Severity: finding.Error, File: path,
		Message: fmt.Sprintf("cannot read %s: %v", name, err), Suggestion: suggestion,
	}
}

// shown is onDisk for messages. A path that would control a terminal is quoted.
func shown(path string) string {
	if path = onDisk(path); !printable(path) {
		return strconv.Quote(path)
	}
	return path
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// onDisk returns path relative to the working directory, if possible.
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
