package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// place has the names of a new topology, which follow from its folder.
type place struct {
	name   string // of the topology
	pkg    string // of the Go package
	module string // folder of the enclosing module; "" if there is none
}

func findPlace(dir string) (p place, err error) {
	p.name = nameOf(filepath.Base(dir))
	p.pkg = packageOf(dir, p.name)
	p.module, err = enclosingModule(dir)
	return p, err
}

// ignored returns the element of dir's path, below its module, because of which the go
// command ignores the package; "" if there is none.
func (p place) ignored(dir string) string {
	below, err := filepath.Rel(p.module, dir)
	if p.module == "" || err != nil || below == "." {
		return ""
	}
	for name := range strings.SplitSeq(filepath.ToSlash(below), "/") {
		if name == "vendor" || name == "testdata" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			return name
		}
	}
	return ""
}

// device reports whether name is a device name on Windows, where a repository with such
// a folder cannot be checked out.
func device(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	port := strings.TrimPrefix(strings.TrimPrefix(stem, "com"), "lpt")
	return slices.Contains([]string{"aux", "con", "nul", "prn"}, stem) || len(stem) == 4 && len(port) == 1 && "1" <= port && port <= "9"
}

// nameMax limits the name that is derived from a folder, well below the limits of
// topologies.
const nameMax = 60

// nameOf derives the name of a topology from the name of a folder. The result is
// lower-case words joined by hyphens, and starts with a letter.
func nameOf(folder string) string {
	words := strings.FieldsFunc(strings.ToLower(folder), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	name := strings.Join(words, "-")
	if name == "" || name[0] < 'a' {
		name = strings.TrimSuffix("topology-"+name, "-")
	}
	return strings.TrimSuffix(name[:min(len(name), nameMax)], "-")
}

// packageOf returns the package of the Go files in dir, or else a package name derived
// from name.
func packageOf(dir, name string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go")) // a folder with brackets has none
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue // opening a pipe would block
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err == nil && !strings.HasSuffix(file, "_test.go") {
			return parsed.Name.Name
		}
	}
	pkg := strings.ReplaceAll(name, "-", "")
	if token.IsKeyword(pkg) || pkg == "main" || pkg == "init" {
		return pkg + "topology"
	}
	return pkg
}

// enclosingModule returns the folder of the module that dir is in, or "".
func enclosingModule(dir string) (folder string, err error) {
	for ; ; dir = filepath.Dir(dir) {
		_, err := os.Lstat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !isNotFolder(err) {
			return "", fmt.Errorf("looking for a module: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// isNotFolder reports whether err is about a path through a file instead of a folder.
func isNotFolder(err error) bool {
	return strings.Contains(err.Error(), "not a directory")
}

// modulePathOf reads the module line of a go.mod.
func modulePathOf(text []byte) string {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "module" {
			if path, err := strconv.Unquote(fields[1]); err == nil {
				return path
			}
			return fields[1]
		}
	}
	return ""
}
