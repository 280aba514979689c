package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// completeMax limits the time for downloads by the go command.
const completeMax = 2 * time.Minute

// advise completes the module of a new topology and prints the next steps.
func advise(ctx context.Context, s Streams, dir string, p place, module *newModule) {
	if module != nil {
		completeModule(ctx, s, dir, module)
	} else {
		adviseTool(ctx, s, p)
	}
	if root := enclosing(dir, ".git"); root != "" && root != dir {
		fmt.Fprintf(s.Err, "topogen: GitHub runs only the workflows in %s: move .github/workflows/topogen.yml there and add a working-directory\n",
			shown(filepath.Join(root, ".github", "workflows")))
	}
	step := "go generate ./... && go test ./..."
	if here, err := os.Getwd(); err != nil || here != dir {
		step = "cd " + shellWord(onDisk(dir)) + " && " + step
	}
	fmt.Fprintf(s.Err, "topogen: next: %s\n", step)
}

// shellWord quotes a path so that a shell reads it as one word. Characters that control
// a terminal are escaped.
func shellWord(path string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,:@%", r)
	}
	switch {
	case strings.HasPrefix(path, "-"):
		return shellWord("./" + path)
	case !strings.ContainsFunc(path, special), filepath.Separator != '/':
		return path
	case !printable(path):
		return strconv.Quote(path)
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func completeModule(ctx context.Context, s Streams, dir string, module *newModule) {
	if module.version == unreleased && module.checkout == "" {
		fmt.Fprintf(s.Err, "topogen: this is a development build, and its checkout was not found: add the line \"replace %s => FOLDER\" to go.mod\n", modulePath)
		return
	}
	if work := enclosing(dir, "go.work"); work != "" && s.getenv("GOWORK") != "off" {
		fmt.Fprintf(s.Err, "topogen: %s encloses the new module: run go work use %s\n", shown(filepath.Join(work, "go.work")), shellWord(onDisk(dir)))
	}
	if module.checkout != "" {
		fmt.Fprintf(s.Err, "topogen: because topogen has no release yet, go.mod replaces it with %s, and the workflow clones it\n", shellWord(module.checkout))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, completeMax)
	defer cancel()
	if output, ok := module.complete(ctx, dir, s.Env); !ok {
		fmt.Fprintf(s.Err, "topogen: the go command could not add topogen to the module. Remove the cause, then run go generate and go mod tidy:\n  %s\n",
			strings.ReplaceAll(output, "\n", "\n  "))
	}
}

// adviseTool prints the command that adds the tool of go generate to an existing
// module. topogen does not edit existing files.
func adviseTool(ctx context.Context, s Streams, p place) {
	text, err := os.ReadFile(filepath.Join(p.module, "go.mod"))
	if err != nil || strings.Contains(string(text), toolPath) || modulePathOf(text) == modulePath {
		return
	}
	module := describeModule(ctx, "", s.Env)
	switch {
	case module.version != unreleased:
		fmt.Fprintf(s.Err, "topogen: add the tool to the module: go get -tool %s@%s\n", toolPath, module.version)
	case module.checkout != "":
		fmt.Fprintf(s.Err, "topogen: add the tool to the module: go mod edit -tool %s -require %s@%s -replace %s=%s && go mod tidy\n",
			toolPath, modulePath, module.version, modulePath, module.checkout)
	default:
		fmt.Fprintf(s.Err, "topogen: add the tool to the module: go mod edit -tool %s -replace %s=FOLDER && go mod tidy\n", toolPath, modulePath)
	}
}

// enclosing returns the nearest folder, dir or above, that has an entry name.
func enclosing(dir, name string) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
